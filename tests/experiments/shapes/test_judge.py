"""The judge of shapes, and what its verdicts are worth on a simulated device."""

from __future__ import annotations

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.shapes.floor import ShapeCeilings
from perfsuite.experiments.shapes.judge import ShapeJudge
from perfsuite.experiments.shapes.shape_design import DEFAULT, QUICK, ShapeDesign
from perfsuite.experiments.shapes.shape_property import WRONG, ShapeProperty
from perfsuite.records.outcome import Outcome
from perfsuite.testing.shape_meters import SimulatedMeters
from perfsuite.workload.shapes.shape_case import ShapeCase
from tests.synthetic_shapes import drawn_cases, tiled

CASE = tiled("gemm/m1-n33-k33/f32")
CEILINGS = ShapeCeilings(bandwidths=((1 << 16, 1e12),), flops_per_s={"fp32": 1e12}, spread_ratio=0.1)
TIMED = (ShapeProperty.PADDING, ShapeProperty.GROWTH)


def noisy(sigma: float, *, factor: float = 1.0, seed: int = 1) -> SimulatedMeters:
    """Return a device with noise within processes and between them, on which unpadded shapes are slower."""

    def time_ns(case: ShapeCase) -> float:
        is_round = case.shape.of("k") % 32 == 0
        return 1e6 * (1.0 if is_round else factor)

    return SimulatedMeters(time_ns=time_ns, sigma=sigma, process_sigma=0.03, placement_sigma=0.03, seed=seed)


def odd_cases(count: int) -> list[ShapeCase]:
    """Draw shapes whose rows are no whole steps long."""
    return [case for case in drawn_cases(2 * count, seed=5) if case.shape.of("k") % 32][:count]


@pytest.mark.parametrize("property", ShapeProperty)
def test_equal_questions_get_the_same_answer(property: ShapeProperty) -> None:
    """The second time nothing is measured, for a case that is equal and not the same."""
    meters = SimulatedMeters(sigma=0.1)
    judge = ShapeJudge(meters, ceilings=CEILINGS)
    first, n_calls = judge.judge(property, CASE), meters.n_calls.total()
    assert judge.judge(property, ShapeCase.from_id(CASE.case_id)) is first
    assert meters.n_calls.total() == n_calls
    assert judge.verdicts == (first,)


def test_what_cannot_be_computed_is_invalid() -> None:
    """Whatever the property, with the subject's reason, and asked once."""
    meters = SimulatedMeters(problem=lambda _: "ggml has no such product")
    judge = ShapeJudge(meters, ceilings=CEILINGS)
    for property in ShapeProperty:
        verdict = judge.judge(property, CASE)
        assert (verdict.outcome, verdict.reason) == (Outcome.INVALID, "ggml has no such product")
    assert meters.n_calls == {"problem": 1}


@pytest.mark.parametrize("property", [ShapeProperty.CORRECT, *TIMED, ShapeProperty.CEILING])
def test_a_crash_that_comes_again_fails(property: ShapeProperty) -> None:
    """The reason names the shape and what became of the process."""
    judge = ShapeJudge(SimulatedMeters(crashes=lambda case: case == CASE), ceilings=CEILINGS)
    verdict = judge.judge(property, CASE)
    assert verdict.outcome is WRONG
    assert verdict.reason == f"{CASE.case_id}: the measuring process was killed by SIGSEGV; in a fresh process as well"


def test_a_case_that_crashes_alone_crashes_no_second_time() -> None:
    """Other properties fail with the same reason and start no process."""
    meters = SimulatedMeters(crashes=lambda case: case == CASE)
    judge = ShapeJudge(meters, ceilings=CEILINGS)
    first = judge.judge(ShapeProperty.CORRECT, CASE)
    n_crashes = meters.n_crashes
    assert [judge.judge(each, CASE).reason for each in TIMED] == [first.reason] * 2
    assert meters.n_crashes == n_crashes


def test_a_crash_of_the_padded_shape_is_not_held_against_other_properties() -> None:
    """There is nothing to compare with, and the case itself is sound."""
    judge = ShapeJudge(SimulatedMeters(crashes=lambda case: case.shape.of("m") == 64))
    verdict = judge.judge(ShapeProperty.PADDING, CASE)
    assert verdict.outcome is Outcome.INVALID
    assert verdict.reason.startswith("nothing to compare with: shape/tiled/gemm/m64")
    assert judge.judge(ShapeProperty.CORRECT, CASE).outcome is Outcome.PASS


def test_a_crash_that_does_not_come_again_leaves_the_verdict() -> None:
    """The fresh process decides; one that dies while it confirms is followed by another, whose crash is the verdict."""
    runs = iter([True])
    meters = SimulatedMeters(crashes=lambda case: next(runs, False))
    verdict = ShapeJudge(meters).judge(ShapeProperty.CORRECT, CASE)
    assert verdict.outcome is Outcome.PASS
    assert "a process died before and no fresh one did" in verdict.reason
    assert meters.n_open == 0
    crashing = SimulatedMeters(slowdowns=((lambda case: case == CASE, 3.0),))
    crashing.crashes = lambda case: crashing.n_fresh > 0 and case == CASE
    assert ShapeJudge(crashing).judge(ShapeProperty.PADDING, CASE).outcome is WRONG
    assert crashing.n_open == 0


def test_a_subject_that_cannot_run_is_an_error() -> None:
    """It is no verdict on a shape."""

    def broken(case: ShapeCase) -> str | None:
        raise PerfsuiteError("there is no OpenCL here")

    with pytest.raises(PerfsuiteError, match="no OpenCL"):
        ShapeJudge(SimulatedMeters(problem=broken)).judge(ShapeProperty.CORRECT, CASE)


@pytest.mark.parametrize("margin_ratio", [-0.1, float("nan"), float("inf")])
def test_a_margin_that_is_none_is_refused(margin_ratio: float) -> None:
    """The error names it; a judge tells on what it measures."""
    assert ShapeJudge(SimulatedMeters()).fingerprint == {"device": "simulated device"}
    with pytest.raises(ValueError, match="margin_ratio is"):
        ShapeJudge(SimulatedMeters(), margin_ratio=margin_ratio)


@pytest.mark.parametrize("sigma", [0.05, 0.12])
@pytest.mark.parametrize("design", [QUICK, DEFAULT], ids=["quick", "default"])
def test_noise_raises_nothing(design: ShapeDesign, sigma: float) -> None:
    """None of 150 shapes that cost what their padded shapes cost fails, in either property that pairs decide."""
    meters = noisy(sigma)
    judge = ShapeJudge(meters, design=design)
    verdicts = [judge.judge(property, case) for case in odd_cases(150) for property in TIMED]
    assert [verdict.reason for verdict in verdicts if verdict.outcome is not Outcome.PASS] == []


@pytest.mark.parametrize(
    ("sigma", "factor", "least"), [(0.05, 1.5, 0.95), (0.05, 2.0, 1.0), (0.12, 1.5, 0.6), (0.12, 2.0, 0.99)]
)
def test_a_slowdown_beyond_the_margin_is_found(sigma: float, factor: float, least: float) -> None:
    """Twice the time practically always; half as much again depends on the noise."""
    judge = ShapeJudge(noisy(sigma, factor=factor))
    verdicts = [judge.judge(ShapeProperty.PADDING, case) for case in odd_cases(100)]
    assert sum(verdict.outcome is Outcome.REGRESSED for verdict in verdicts) >= least * 100


def test_a_process_that_drew_a_bad_layout_fools_one_process_only() -> None:
    """Where layouts alone make one pair in four slower than the margin, screens flag many and few are raised.

    Two sides of 0.25 each differ by 0.35 in logarithms: the margin of 0.22 is exceeded with a chance of 0.26, and by
    three processes with one of 0.018.
    """
    meters = SimulatedMeters(time_ns=lambda _: 1e6, sigma=0.02, placement_sigma=0.25, seed=3)
    judge = ShapeJudge(meters)
    verdicts = [judge.judge(ShapeProperty.PADDING, case) for case in odd_cases(400)]
    n_raised = sum(verdict.outcome.fails for verdict in verdicts)
    n_screened = sum("the screen saw" in verdict.reason for verdict in verdicts) + n_raised
    assert n_screened > 60
    assert n_raised < 16


def test_a_budget_is_the_same_for_every_shape_that_passes() -> None:
    """A screen takes one request of pairs, whatever it sees."""
    meters = noisy(0.12)
    judge = ShapeJudge(meters)
    cases = odd_cases(20)
    for case in cases:
        judge.judge(ShapeProperty.PADDING, case)
    assert meters.n_calls["pairs"] == len(cases)
    assert {meters.n_samples[case.case_id] for case in cases} == {DEFAULT.n_pairs}
