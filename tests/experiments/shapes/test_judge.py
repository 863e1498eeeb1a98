"""The judge of shapes, and what its verdicts are worth on a simulated device."""

from __future__ import annotations

import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from perfsuite.device.profile import find_profile
from perfsuite.expectation.shapes.floor import ShapeForecasts, floor_ns, operator_shape
from perfsuite.expectation.timing.grid import standard_shapes
from perfsuite.expectation.timing.operator_times import OperatorTimes
from perfsuite.experiments.run_config import Margins, RunConfig
from perfsuite.experiments.shapes import judge
from perfsuite.experiments.shapes.experiment import ShapeJudges
from perfsuite.experiments.shapes.judge import ShapeJudge
from perfsuite.experiments.shapes.request import HUNT_BUDGETS
from perfsuite.experiments.shapes.shape_property import WRONG, ShapeProperty
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.ceiling_store import store_calibration
from perfsuite.measure.shapes.meter import Deviation
from perfsuite.records.outcome import Outcome
from perfsuite.testing.shape_meters import SimulatedMeter, SimulatedMeters
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject
from tests.experiments.shapes.conftest import FakeSubjects
from tests.synthetic_calibration import N_THREADS, calibration, lawful_ns, points_of
from tests.synthetic_shapes import ceilings, drawn_cases, ggml, tiled

BOUNDED = WHOLE = tiled("gemm/m64-n64-k64/f32")
SLOW_CEILINGS = ceilings(1e9)
FLOOR_NS = floor_ns(BOUNDED.shape, SLOW_CEILINGS)


def fast_meters(share: float) -> SimulatedMeters:
    return SimulatedMeters(time_ns=lambda _: share * FLOOR_NS, sigma=0.0)


@pytest.mark.parametrize(
    ("share", "outcome", "reason", "n_fresh"),
    [
        (4.0, Outcome.PASS, "0.25 of what the ceilings allow", 0),
        (0.81, Outcome.PASS, "1.2 of what the ceilings allow", 0),
        (0.79, Outcome.IMPOSSIBLE, "measured wrongly, or not all computed; in 2 fresh processes", 2),
    ],
)
def test_a_shape_is_held_against_its_floor_less_the_ceilings_spread(
    share: float, outcome: Outcome, reason: str, n_fresh: int
) -> None:
    """A fifth below the floor passes at a spread of a fifth, more is impossible in every process."""
    device = fast_meters(share)
    verdict = ShapeJudge(device, ceilings=SLOW_CEILINGS, ceiling_spread_ratio=0.2).judge(ShapeProperty.CEILING, BOUNDED)
    assert verdict.ratio == pytest.approx(1.0 / share, rel=1e-3)
    assert reason in verdict.reason
    assert (verdict.outcome, device.n_fresh) == (outcome, n_fresh)


CALIBRATED = ggml("gemv/n4096-k4096/q8_0")


@pytest.fixture(scope="module")
def forecasts() -> ShapeForecasts:
    """Return the forecasts of a device that follows the law."""
    times = OperatorTimes(points_of(standard_shapes()), n_threads=N_THREADS)
    return ShapeForecasts(times=times, tolerance_ratio=2.5, least_ns=100_000)


def meters(factor: float) -> SimulatedMeters:
    return SimulatedMeters(time_ns=lambda case: factor * lawful_ns(operator_shape(case.shape)))


@pytest.mark.parametrize(
    ("factor", "outcome", "end", "n_fresh"),
    [(0.1, Outcome.PASS, "", 0), (2.4, Outcome.PASS, "", 0), (4.0, Outcome.SLOW, "; in 2 fresh processes", 2)],
)
def test_an_operator_beyond_its_limit_is_slow(
    factor: float, outcome: Outcome, end: str, n_fresh: int, forecasts: ShapeForecasts
) -> None:
    """Weights from a cache make it faster than forecast, which is no finding."""
    device = meters(factor)
    verdict = ShapeJudge(device, forecasts=forecasts).judge(ShapeProperty.CALIBRATED, CALIBRATED)
    assert (verdict.outcome, device.n_fresh) == (outcome, n_fresh)
    assert verdict.ratio == pytest.approx(factor, rel=0.05)
    assert re.search(f": expected .+, at most .+, limit [^;]+{end}$", verdict.reason)


def test_what_bounds_nothing_is_invalid(forecasts: ShapeForecasts) -> None:
    verdict = ShapeJudge(meters(50.0), forecasts=forecasts).judge(ShapeProperty.CALIBRATED, ggml("gemv/n8-k32/q8_0"))
    assert verdict.outcome is Outcome.INVALID
    assert "too short to bound" in verdict.reason
    assert verdict.ratio is not None
    verdict = ShapeJudge(meters(1.0)).judge(ShapeProperty.CALIBRATED, CALIBRATED)
    assert verdict.outcome is Outcome.INVALID
    assert "run 'perfsuite calibrate'" in verdict.reason


def test_a_shape_that_costs_no_more_than_its_padded_shape_passes() -> None:
    """A kernel that skips its padding does better than the property asks; a padded shape is compared with nothing."""
    case, own = tiled("gemm/m1-n33-k40/f32"), SimulatedMeters()
    verdict = ShapeJudge(SimulatedMeters()).judge(ShapeProperty.PADDING, case)
    assert verdict.outcome is Outcome.PASS
    assert verdict.ratio == pytest.approx(1.0, abs=0.02)
    assert verdict.against_id == "shape/tiled/gemm/m64-n64-k64/f32/tile64-vector8"
    assert "against padded m64-n64-k64, margin 25 %" in verdict.reason
    skipping = SimulatedMeters(time_ns=lambda case: float(case.shape.flops))
    assert ShapeJudge(skipping).judge(ShapeProperty.PADDING, case).outcome is Outcome.PASS
    verdict = ShapeJudge(own).judge(ShapeProperty.PADDING, WHOLE)
    assert (verdict.outcome, verdict.ratio, own.n_samples) == (Outcome.PASS, None, {})


@pytest.mark.parametrize("case", [tiled("gemm/m1-n33-k33/f32"), ggml("gemm/m1-n33-k33/f32")], ids=["tiled", "ggml"])
def test_a_slow_path_at_an_edge_regresses(case: ShapeCase) -> None:
    meters = SimulatedMeters(slowdowns=((lambda case: case.shape.of("k") % 32 == 1, 2.0),))
    verdict = ShapeJudge(meters).judge(ShapeProperty.PADDING, case)
    assert (verdict.outcome, meters.n_fresh) == (Outcome.REGRESSED, 2)
    assert verdict.ratio == pytest.approx(2.0, abs=0.05)
    assert verdict.reason.endswith("margin 25 %; in 2 fresh processes")


def test_a_cost_that_grows_with_every_dimension_passes() -> None:
    meters = SimulatedMeters()
    verdict = ShapeJudge(meters).judge(ShapeProperty.GROWTH, WHOLE)
    assert verdict.outcome is Outcome.PASS
    assert verdict.against_id == "shape/tiled/gemm/m64-n64-k96/f32/tile64-vector8"
    assert verdict.ratio is not None
    assert verdict.ratio < 1.0
    assert meters.n_calls["pairs"] == 3


@pytest.mark.parametrize(("dimension", "n_compared"), [("m", 1), ("n", 2), ("k", 3)])
def test_a_cost_that_falls_along_any_dimension_regresses(dimension: str, n_compared: int) -> None:
    meters = SimulatedMeters(time_ns=lambda case: 1e6 if case.shape.of(dimension) > 64 else 2e6)
    verdict = ShapeJudge(meters).judge(ShapeProperty.GROWTH, WHOLE)
    assert verdict.outcome is Outcome.REGRESSED
    assert verdict.ratio == pytest.approx(2.0, abs=0.05)
    assert f"against grown {dimension}" in verdict.reason
    assert meters.n_calls["pairs"] == n_compared + 2


def test_a_dimension_that_cannot_grow_bounds_nothing() -> None:
    """The others are judged; where none can grow the verdict is INVALID with every reason."""

    def too_large(case: ShapeCase) -> str | None:
        return "too large" if case.shape.of("m") > 64 else None

    assert ShapeJudge(SimulatedMeters(problem=too_large)).judge(ShapeProperty.GROWTH, WHOLE).outcome is Outcome.PASS
    gemv = tiled("gemv/n64-k64/f32")
    verdict = ShapeJudge(SimulatedMeters(problem=lambda case: None if case == gemv else "too large")).judge(
        ShapeProperty.GROWTH, gemv
    )
    assert (verdict.outcome, verdict.reason) == (
        Outcome.INVALID,
        "grown to n128: too large; grown to k96: too large",
    )


AWKWARD = tiled("gemm/m1-n33-k32/f32")


@pytest.mark.parametrize(
    ("is_wrong", "outcome", "reason", "n_fresh"),
    [
        ([False], Outcome.PASS, "computes correctly: error norm 1e-05, tolerance 0.001", 0),
        ([True, True], WRONG, "computes wrongly: error norm 1, tolerance 0.001; in fresh process 1", 1),
        ([True, False, True], WRONG, "computes wrongly: error norm 1, tolerance 0.001; in fresh process 2", 2),
        ([True, False, False], Outcome.INVALID, "right in 2 fresh ones", 2),
    ],
)
def test_an_output_is_right_or_wrong(is_wrong: list[bool], outcome: Outcome, reason: str, n_fresh: int) -> None:
    """A race is not excused by a run that was right; where no fresh process shows it, nothing is known of the shape."""
    runs = iter(is_wrong)
    meters = SimulatedMeters(wrong=lambda case: next(runs))
    verdict = ShapeJudge(meters).judge(ShapeProperty.CORRECT, AWKWARD)
    assert verdict.outcome is outcome
    assert reason in verdict.reason
    assert verdict.ratio == pytest.approx(1000.0 if is_wrong[0] else 0.01)
    assert meters.n_fresh == n_fresh


@pytest.mark.parametrize("error_norm", [math.inf, math.nan])
def test_an_output_that_is_not_finite_has_no_ratio(error_norm: float, monkeypatch: pytest.MonkeyPatch) -> None:
    deviation = Deviation(error_norm=error_norm, tolerance=1e-3)
    monkeypatch.setattr(SimulatedMeter, "verify", lambda *_: deviation)
    verdict = ShapeJudge(SimulatedMeters()).judge(ShapeProperty.CORRECT, AWKWARD)
    assert (verdict.outcome, verdict.ratio) == (WRONG, None)


CASE = tiled("gemm/m1-n33-k33/f32")
CEILINGS = ceilings(1e12)
TIMED = (ShapeProperty.PADDING, ShapeProperty.GROWTH)


def noisy(sigma: float, *, factor: float = 1.0) -> SimulatedMeters:
    """Return a device with noise within processes and between them, on which unpadded shapes are slower."""
    slowdowns = ((lambda case: case.shape.of("k") % 32 != 0, factor),)
    return SimulatedMeters(
        time_ns=lambda _: 1e6, sigma=sigma, process_sigma=0.03, placement_sigma=0.03, seed=1, slowdowns=slowdowns
    )


def odd_cases(count: int) -> list[ShapeCase]:
    return [case for case in drawn_cases(2 * count, seed=5) if case.shape.of("k") % 32][:count]


def test_what_cannot_be_computed_is_invalid() -> None:
    meters = SimulatedMeters(problem=lambda _: "ggml has no such product")
    judge = ShapeJudge(meters, ceilings=CEILINGS)
    for property in ShapeProperty:
        verdict = judge.judge(property, CASE)
        assert (verdict.outcome, verdict.reason) == (Outcome.INVALID, "ggml has no such product")
    assert meters.n_calls == {"problem": 1}


@pytest.mark.parametrize("property", [ShapeProperty.CORRECT, *TIMED, ShapeProperty.CEILING])
def test_a_crash_that_comes_again_fails(property: ShapeProperty) -> None:
    judge = ShapeJudge(SimulatedMeters(crashes=lambda case: case == CASE), ceilings=CEILINGS)
    verdict = judge.judge(property, CASE)
    assert verdict.outcome is WRONG
    assert verdict.reason == f"{CASE.case_id}: the measuring process was killed by SIGSEGV; in a fresh process as well"


def test_a_crash_of_the_padded_shape_is_not_held_against_other_properties() -> None:
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


@pytest.mark.parametrize("sigma", [0.05, 0.12])
@pytest.mark.parametrize("profile", ["quick", "default"])
def test_noise_raises_nothing(profile: str, sigma: float) -> None:
    """None of 150 shapes that cost what their padded shapes cost fails, in either property that pairs decide."""
    meters = noisy(sigma)
    judge = ShapeJudge(meters, budget=HUNT_BUDGETS[profile])
    verdicts = [judge.judge(property, case) for case in odd_cases(150) for property in TIMED]
    assert [verdict.reason for verdict in verdicts if verdict.outcome is not Outcome.PASS] == []


@pytest.mark.parametrize(
    ("sigma", "factor", "least"), [(0.05, 1.5, 0.95), (0.05, 2.0, 1.0), (0.12, 1.5, 0.6), (0.12, 2.0, 0.99)]
)
def test_a_slowdown_beyond_the_margin_is_found(sigma: float, factor: float, least: float) -> None:
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


@pytest.mark.parametrize("is_linked", [True, False])
def test_shapes_are_forecast_by_the_boards_own_calibration(
    subjects: FakeSubjects, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_linked: bool
) -> None:
    """Over a link by that of this board, on the machine itself by that which is no board's; the other is another's."""
    board = LocalBoard(cache_dir=tmp_path, is_local=not is_linked)
    facts = board.facts()
    own, other = (facts.identity, None) if is_linked else (None, facts.identity)
    forecasts: list[ShapeForecasts | None] = []
    monkeypatch.setattr(judge, "ShapeJudge", lambda *_, **told: forecasts.append(told["forecasts"]))
    for kept_by in (other, own):
        stored = calibration(fingerprint=dict(facts.fingerprint))
        store_calibration(stored, facts.engine.build_id, tmp_path, board=kept_by)
        judges(board, tmp_path).of(Subject.GGML_CPU)
    assert [each is not None for each in forecasts] == [False, True]


def judges(board: LocalBoard, cache_dir: Path) -> ShapeJudges:
    plain = {
        "board": board,
        "old": None,
        "engine": board.facts().engine,
        "cache_dir": cache_dir,
        "run_dir": cache_dir,
        "n_threads": N_THREADS,
        "profile": find_profile("host"),
        "opencl_platform": None,
        "margins": Margins(),
    }
    request: Any = SimpleNamespace(budget=None, kernels_dir=None)
    return ShapeJudges(config=cast(RunConfig, SimpleNamespace(**plain)), request=request, ceilings=lambda: None)
