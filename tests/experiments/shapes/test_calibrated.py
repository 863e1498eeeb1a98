"""ggml's operators against the calibration."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.expectation.shapes.floor import ShapeCeilings, ShapeForecasts, floor_ns, operator_shape
from perfsuite.expectation.timing.grid import standard_shapes
from perfsuite.expectation.timing.operator_times import OperatorTimes
from perfsuite.experiments.shapes.calibrated import judge_calibrated, judge_ceiling
from perfsuite.records.outcome import Outcome
from perfsuite.testing.shape_meters import SimulatedMeters
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject
from tests.synthetic_calibration import N_THREADS, lawful_ns, points_of
from tests.synthetic_shapes import basis, ggml, tiled

BOUNDED = tiled("gemm/m64-n64-k64/f32")
SPREAD_CEILINGS = ShapeCeilings(bandwidths=((1 << 16, 1e12),), flops_per_s={"fp32": 1e9}, spread_ratio=0.2)
FLOOR_NS = floor_ns(BOUNDED.shape, SPREAD_CEILINGS)


def fast_meters(share: float, *, sigma: float = 0.0) -> SimulatedMeters:
    """Return a device that takes so many times the floor."""
    return SimulatedMeters(time_ns=lambda _: share * FLOOR_NS, sigma=sigma)


def test_a_shape_above_its_floor_passes_with_its_efficiency() -> None:
    """The ratio is the floor over the fastest sample; without ceilings there is none, and nothing is measured."""
    verdict = judge_ceiling(basis(fast_meters(4.0), ceilings=SPREAD_CEILINGS), BOUNDED)
    assert verdict.outcome is Outcome.PASS
    assert verdict.ratio == pytest.approx(0.25, rel=1e-3)
    assert "0.25 of what the ceilings allow" in verdict.reason
    device = fast_meters(1.0)
    assert judge_ceiling(basis(device), BOUNDED).outcome is Outcome.INVALID
    assert not device.n_calls


def test_the_ceilings_own_spread_is_allowed() -> None:
    """A fifth below the floor passes at a spread of a fifth, more is impossible in every process."""
    assert judge_ceiling(basis(fast_meters(0.81), ceilings=SPREAD_CEILINGS), BOUNDED).outcome is Outcome.PASS
    impossible = fast_meters(0.79)
    verdict = judge_ceiling(basis(impossible, ceilings=SPREAD_CEILINGS), BOUNDED)
    assert verdict.outcome is Outcome.IMPOSSIBLE
    assert "measured wrongly, or not all computed; in 2 fresh processes" in verdict.reason
    assert impossible.n_fresh == 2


def test_samples_of_other_properties_count() -> None:
    """The fastest sample is that of all that the process measured."""
    device = fast_meters(4.0, sigma=0.1)
    rests = basis(device, ceilings=SPREAD_CEILINGS)
    pairs = rests.screen.pairs(BOUNDED, tiled("gemm/m64-n64-k96/f32"), 16)
    verdict = judge_ceiling(rests, BOUNDED)
    assert verdict.ratio == pytest.approx(FLOOR_NS / min(pairs.old_ns))
    assert device.n_calls["samples"] == 0


CALIBRATED = ggml("gemv/n4096-k4096/q8_0")


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
    verdict = judge_calibrated(basis(meters(factor), forecasts=forecasts), CALIBRATED)
    assert verdict.outcome is Outcome.PASS
    assert verdict.ratio == pytest.approx(factor, rel=0.05)


def test_an_operator_beyond_its_limit_is_slow(forecasts: ShapeForecasts) -> None:
    """In the screen and in two fresh processes, with forecast, bound and limit told."""
    device = meters(4.0)
    verdict = judge_calibrated(basis(device, forecasts=forecasts), CALIBRATED)
    assert verdict.outcome is Outcome.SLOW
    assert verdict.ratio == pytest.approx(4.0, rel=0.05)
    assert verdict.reason.endswith("; in 2 fresh processes")
    assert "expected" in verdict.reason
    assert "limit" in verdict.reason
    assert device.n_fresh == 2


def test_what_bounds_nothing_is_invalid(forecasts: ShapeForecasts) -> None:
    """A forecast as short as the start of a graph, with its ratio all the same; no calibration, with the command."""
    verdict = judge_calibrated(basis(meters(50.0), forecasts=forecasts), ggml("gemv/n8-k32/q8_0"))
    assert verdict.outcome is Outcome.INVALID
    assert "too short to bound" in verdict.reason
    assert verdict.ratio is not None
    verdict = judge_calibrated(basis(meters(1.0)), CALIBRATED)
    assert verdict.outcome is Outcome.INVALID
    assert "run 'perfsuite calibrate'" in verdict.reason


@pytest.mark.parametrize("case", [tiled("gemv/n64-k64/f32"), replace(CALIBRATED, subject=Subject.GGML_OPENCL)])
def test_other_subjects_have_no_calibration(case: ShapeCase, forecasts: ShapeForecasts) -> None:
    """A calibration is of ggml on the processor."""
    assert judge_calibrated(basis(meters(1.0), forecasts=forecasts), case).outcome is Outcome.INVALID
