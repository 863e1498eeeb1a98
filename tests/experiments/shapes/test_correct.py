"""Whether a shape's output is right."""

from __future__ import annotations

import math

import pytest

from perfsuite.experiments.shapes.correct import judge_correct
from perfsuite.experiments.shapes.shape_property import WRONG
from perfsuite.measure.shapes.meter import Deviation
from perfsuite.records.outcome import Outcome
from perfsuite.testing.shape_meters import SimulatedMeter, SimulatedMeters
from tests.synthetic_shapes import basis, tiled

AWKWARD = tiled("gemm/m1-n33-k32/f32")


def test_a_right_output_passes() -> None:
    """The ratio is the error over the tolerance, and one process is enough."""
    meters = SimulatedMeters()
    verdict = judge_correct(basis(meters), AWKWARD)
    assert verdict.outcome is Outcome.PASS
    assert verdict.ratio == pytest.approx(0.01)
    assert meters.n_fresh == 0


def test_a_wrong_output_fails() -> None:
    """One fresh process that computes wrongly as well settles it."""
    meters = SimulatedMeters(wrong=lambda case: case == AWKWARD)
    verdict = judge_correct(basis(meters), AWKWARD)
    assert verdict.outcome is WRONG
    assert verdict.outcome.fails
    assert verdict.reason == "computes wrongly: error norm 1, tolerance 0.001; in fresh process 1"
    assert meters.n_fresh == 1


@pytest.mark.parametrize(
    ("last", "outcome", "reason"),
    [(True, WRONG, "in fresh process 2"), (False, Outcome.INVALID, "right in 2 fresh ones")],
)
def test_a_race_is_not_excused_by_a_run_that_was_right(last: bool, outcome: Outcome, reason: str) -> None:
    """The second fresh process may be the one that shows it; where none does, nothing is known of the shape."""
    runs = iter((True, False, last))
    verdict = judge_correct(basis(SimulatedMeters(wrong=lambda case: next(runs))), AWKWARD)
    assert verdict.outcome is outcome
    assert reason in verdict.reason


@pytest.mark.parametrize("error_norm", [math.inf, math.nan])
def test_an_output_that_is_not_finite_has_no_ratio(error_norm: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails all the same."""
    deviation = Deviation(error_norm=error_norm, tolerance=1e-3)
    monkeypatch.setattr(SimulatedMeter, "verify", lambda *_: deviation)
    verdict = judge_correct(basis(SimulatedMeters()), AWKWARD)
    assert verdict.outcome is WRONG
    assert verdict.ratio is None
