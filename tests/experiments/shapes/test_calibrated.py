"""ggml's operators against the calibration."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.expectation.shapes.forecast import ShapeForecasts, operator_shape
from perfsuite.expectation.timing.grid import standard_shapes
from perfsuite.expectation.timing.operator_times import OperatorTimes
from perfsuite.experiments.shapes.calibrated import judge_calibrated
from perfsuite.records.outcome import Outcome
from perfsuite.testing.shape_meters import SimulatedMeters
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject
from tests.synthetic_calibration import N_THREADS, lawful_ns, points_of
from tests.synthetic_shapes import basis, ggml, tiled

CASE = ggml("gemv/n4096-k4096/q8_0")


@pytest.fixture(scope="module")
def forecasts() -> ShapeForecasts:
    """Return the forecasts of a device that follows the law."""
    times = OperatorTimes(points_of(standard_shapes()), n_threads=N_THREADS)
    return ShapeForecasts(times=times, tolerance_ratio=2.5, least_ns=100_000)


def meters(factor: float) -> SimulatedMeters:
    """Return a device that takes so many times what the law says."""
    return SimulatedMeters(time_ns=lambda case: factor * lawful_ns(operator_shape(case.shape)))


@pytest.mark.parametrize("factor", [0.1, 1.0, 2.4])
def test_an_operator_within_its_limit_passes(factor: float, forecasts: ShapeForecasts) -> None:
    """Weights from a cache make it faster than forecast, which is no finding."""
    verdict = judge_calibrated(basis(meters(factor), forecasts=forecasts), CASE)
    assert verdict.outcome is Outcome.PASS
    assert verdict.ratio == pytest.approx(factor, rel=0.05)


def test_an_operator_beyond_its_limit_is_slow(forecasts: ShapeForecasts) -> None:
    """In the screen and in two fresh processes, with forecast, bound and limit told."""
    device = meters(4.0)
    verdict = judge_calibrated(basis(device, forecasts=forecasts), CASE)
    assert verdict.outcome is Outcome.SLOW
    assert verdict.ratio == pytest.approx(4.0, rel=0.05)
    assert verdict.reason.endswith("; in 2 fresh processes")
    assert "expected" in verdict.reason
    assert "limit" in verdict.reason
    assert device.n_fresh == 2


def test_a_short_forecast_bounds_nothing(forecasts: ShapeForecasts) -> None:
    """The start of a graph takes as long; the ratio is told all the same."""
    verdict = judge_calibrated(basis(meters(50.0), forecasts=forecasts), ggml("gemv/n8-k32/q8_0"))
    assert verdict.outcome is Outcome.INVALID
    assert "too short to bound" in verdict.reason
    assert verdict.ratio is not None


def test_a_device_that_was_never_calibrated_is_told_how(forecasts: ShapeForecasts) -> None:
    """The verdict is INVALID and names the command."""
    verdict = judge_calibrated(basis(meters(1.0)), CASE)
    assert verdict.outcome is Outcome.INVALID
    assert "run 'perfsuite calibrate'" in verdict.reason


@pytest.mark.parametrize("case", [tiled("gemv/n64-k64/f32"), replace(CASE, subject=Subject.GGML_OPENCL)])
def test_other_subjects_have_no_calibration(case: ShapeCase, forecasts: ShapeForecasts) -> None:
    """A calibration is of ggml on the processor."""
    assert judge_calibrated(basis(meters(1.0), forecasts=forecasts), case).outcome is Outcome.INVALID
