"""The three oracles of a case, joined."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.records.case import Expectation
from perfsuite.records.events import Phase
from perfsuite.records.outcome import CaseSamples, Judgement, Outcome
from perfsuite.units import format_change
from perfsuite.verdict.allowance import DEFAULT_RESOLUTION_RATIO, Allowance, StepShare
from perfsuite.verdict.compare import MIN_SAMPLES, BaselineMatch, judge

OLD = (1000, 1001, 1002, 1003, 1004)
CASE = "phase/a/b/decode"


def judged(
    *samples: int,
    old: tuple[int, ...] = (),
    problems: tuple[str, ...] = (),
    floor_ns: int | None = None,
    limit_ns: int | None = None,
    interval_ns: tuple[int | None, int | None] = (None, None),
    spread_ratio: float = 0.01,
    most_ratio: float = DEFAULT_RESOLUTION_RATIO,
    share: StepShare | None = None,
    **matched: Any,
) -> Judgement:
    """Judge samples with a margin of 5 % and a session spread of 1 % unless another is given."""
    return judge(
        CaseSamples(case_id=CASE, samples_ns=samples, problems=problems),
        kind="phase",
        expectation=Expectation(
            floor_ns=floor_ns, expected_ns=500, limit_ns=limit_ns, lower_ns=interval_ns[0], upper_ns=interval_ns[1]
        ),
        baseline=BaselineMatch(sessions_ns=(old,) if old else (), **matched),
        allowed=Allowance(
            margin_ratio=0.05, session_spread_ratio=spread_ratio, most_resolution_ratio=most_ratio, share=share
        ),
    )


def scaled(factor: float) -> tuple[int, ...]:
    return tuple(round(sample * factor) for sample in OLD)


@pytest.mark.parametrize(
    ("factor", "outcome"),
    [
        (1.07, Outcome.REGRESSED),
        (1.02, Outcome.PASS),
        (0.98, Outcome.PASS),
        (0.9, Outcome.IMPROVED),
    ],
)
def test_a_change_beyond_the_margin_is_one(factor: float, outcome: Outcome) -> None:
    found = judged(*scaled(factor), old=OLD)
    assert found.outcome is outcome
    assert found.change_ratio == pytest.approx(factor, rel=0.005)
    assert ("PASS at 5 %" if outcome is Outcome.PASS else "margin 5 %") in found.reason


@pytest.mark.parametrize(
    "samples", [(500, 800, 1000, 1500, 2500), (900, 1000, 1100, 1200, 1300), (1048,) * 5, (1200, 1000, 1000)]
)
def test_what_noise_may_hide_is_inconclusive(samples: tuple[int, ...]) -> None:
    """Where a slowdown of the margin cannot be ruled out, nor shown, the smallest detectable change is reported."""
    found = judged(*samples, old=OLD)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "smallest detectable change" in found.reason


def test_what_was_not_compared_has_no_figures() -> None:
    found = judged(*OLD)
    assert (found.outcome, found.baseline_ns, found.change_ratio) == (Outcome.NEW, None, None)
    assert "--baseline=record" in found.reason
    assert (found.lower_ratio, found.upper_ratio, found.margin_ratio, found.resolution_ratio) == (None,) * 4
    found = judged(old=OLD)
    assert found.measured_ns is found.change_ratio is None
    assert found.baseline_ns == 1002


def test_a_baseline_of_another_fingerprint_is_incomparable() -> None:
    found = judged(*OLD, differences=("threads '2', now '1'", "governor 'a', now 'b'"))
    assert found.outcome is Outcome.INCOMPARABLE
    assert found.reason == "the baseline was recorded with threads '2', now '1'; governor 'a', now 'b'"
    found = judged(*scaled(2), old=OLD, problems=("the processors were shared",), floor_ns=10**6)
    assert (found.outcome, found.reason) == (Outcome.INVALID, "the processors were shared")
    found = judged(*OLD, problem="the device has changed")
    assert (found.outcome, found.reason) == (Outcome.INVALID, "the device has changed")


@pytest.mark.parametrize(
    ("samples", "reason"),
    [
        ((), "no replicate measured this case"),
        ((0, 5, 5), "a sample is 0 ns, expected more than 0"),
        ((5, -3, 5), "a sample is -3 ns, expected more than 0"),
        (OLD[: MIN_SAMPLES - 1], f"only {MIN_SAMPLES - 1} valid replicates, {MIN_SAMPLES} are needed"),
        ((7,), f"only 1 valid replicates, {MIN_SAMPLES} are needed"),
    ],
)
def test_too_little_is_invalid(samples: tuple[int, ...], reason: str) -> None:
    for old in ((), OLD):
        found = judged(*samples, old=old)
        assert (found.outcome, found.reason) == (Outcome.INVALID, reason)


@pytest.mark.parametrize(
    ("floor_ns", "limit_ns", "outcome"),
    [
        (1003, None, Outcome.IMPOSSIBLE),
        (1002, None, Outcome.NEW),
        (None, 1001, Outcome.SLOW),
        (None, 1002, Outcome.NEW),
        (None, None, Outcome.NEW),
    ],
)
def test_the_median_is_held_against_floor_and_limit(
    floor_ns: int | None, limit_ns: int | None, outcome: Outcome
) -> None:
    found = judged(*OLD, floor_ns=floor_ns, limit_ns=limit_ns)
    assert found.outcome is outcome
    assert (found.measured_ns, found.floor_ns, found.limit_ns) == (1002, floor_ns, limit_ns)


def test_physics_is_reported_with_its_figures() -> None:
    """The reason has what was measured and allowed; the forecast's interval is kept and decides nothing."""
    assert judged(*OLD, floor_ns=2000).reason == "1.00 µs is below the floor of 2.00 µs: measured wrongly"
    slow = "slower than expected: 1.00 µs is beyond the limit of 700 ns (expected 500 ns"
    assert judged(*OLD, limit_ns=700).reason == f"{slow})"
    assert judged(*OLD, limit_ns=700, interval_ns=(400, 600)).reason == f"{slow}, at most 600 ns)"
    found = judged(*OLD, interval_ns=(400, 600))
    assert (found.expected_ns, found.lower_ns, found.upper_ns) == (500, 400, 600)
    assert found.outcome is Outcome.NEW
    assert judged(*OLD).lower_ns is judged(*OLD).upper_ns is None


#: For each outcome, circumstances under which it holds; the rest is quiet.
HOLDS: dict[Outcome, dict[str, Any]] = {
    Outcome.INVALID: {"problems": ("a problem",)},
    Outcome.IMPOSSIBLE: {"floor_ns": 10**9},
    Outcome.INCOMPARABLE: {"differences": ("threads '2', now '1'",)},
    Outcome.REGRESSED: {"old": (100,) * 5},
    Outcome.SLOW: {"limit_ns": 1},
}


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(HOLDS, 2)))
def test_where_two_outcomes_hold_the_first_is_given(first: Outcome, second: Outcome) -> None:
    """A case beyond its limit is SLOW though it passes, improves, or is undecided against its baseline."""
    assert judged(*OLD, **{**HOLDS[second], **HOLDS[first]}).outcome is first
    for old in (OLD, (500, 1000, 2000), scaled(2), ()):
        assert judged(*OLD, old=old, limit_ns=1).outcome is Outcome.SLOW


_SAMPLES = st.lists(st.integers(-5, 10**9), max_size=8).map(tuple)
_POSITIVE = st.lists(st.integers(1, 10**9), max_size=8).map(tuple)
_BOUND = st.none() | st.integers(0, 10**9)


@given(_SAMPLES, _POSITIVE, _BOUND, _BOUND)
def test_every_case_has_an_outcome_and_a_reason(
    samples: tuple[int, ...], old: tuple[int, ...], floor_ns: int | None, limit_ns: int | None
) -> None:
    """Whatever was measured, there is one outcome with a reason, and what passes was measured, compared and bounded."""
    found = judged(*samples, old=old, floor_ns=floor_ns, limit_ns=limit_ns)
    assert found.reason
    if found.outcome in (Outcome.PASS, Outcome.IMPROVED):
        assert len(samples) >= MIN_SAMPLES
        assert min(samples) > 0
        assert old
        assert found.measured_ns is not None
        assert (floor_ns or 0) <= found.measured_ns
        assert limit_ns is None or found.measured_ns <= limit_ns


@given(st.lists(st.integers(10**4, 10**6), min_size=MIN_SAMPLES, max_size=8))
def test_a_run_against_itself_is_no_regression(samples: list[int]) -> None:
    assert judged(*samples, old=tuple(samples)).outcome in (Outcome.PASS, Outcome.INCONCLUSIVE)


@given(
    st.lists(st.integers(1000, 1100), min_size=5, max_size=8),
    st.lists(st.integers(1000, 1100), min_size=5, max_size=8),
    st.floats(1.3, 100.0),
)
def test_a_slowdown_beyond_all_noise_is_regressed(old: list[int], new: list[int], factor: float) -> None:
    slower = [round(sample * factor) for sample in new]
    assert judged(*slower, old=tuple(old)).outcome is Outcome.REGRESSED
    assert judged(*old, old=tuple(slower)).outcome is Outcome.IMPROVED


def test_a_stored_baseline_gives_bounds_and_a_margin() -> None:
    """A judgement carries the interval that its reason shows, and the engines where they differ."""
    found = judged(*scaled(1.2), old=OLD)
    assert found.lower_ratio is not None
    assert found.upper_ratio is not None
    assert found.change_ratio is not None
    assert 1.0 < found.lower_ratio < found.change_ratio < found.upper_ratio
    assert f"({format_change(found.lower_ratio)} to {format_change(found.upper_ratio)})" in found.reason
    assert found.margin_ratio == 0.05
    found = judged(*scaled(1.5), old=OLD, engines="engine b123 -> b456")
    assert found.outcome is Outcome.REGRESSED
    assert found.reason.endswith("; engine b123 -> b456")


def test_a_pass_states_what_is_resolved_where_that_is_more_than_the_margin() -> None:
    """Up to the limit it passes at what is resolved; between and beyond it is undecided."""
    found = judged(*OLD, old=OLD, spread_ratio=0.15)
    assert found.outcome is Outcome.PASS
    assert found.reason.startswith("+0.0 % (-13.0 % to +15.0 %), PASS at 27 %; default spread 15 %")
    assert (found.resolution_ratio, found.margin_ratio) == (pytest.approx(0.27, abs=0.001), 0.05)
    found = judged(*scaled(1.13), old=OLD, spread_ratio=0.15)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "margin 5 %; the smallest detectable change is +27.0 %; default spread" in found.reason
    assert found.resolution_ratio == pytest.approx(0.27, abs=0.001)
    found = judged(*OLD, old=OLD, spread_ratio=0.15, most_ratio=0.26)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "detectable change is +27.0 %, --perf-resolution is 26 %" in found.reason
    faster = judged(*scaled(0.9), old=OLD, spread_ratio=0.15, most_ratio=0.26)
    assert (faster.outcome, faster.resolution_ratio) == (Outcome.PASS, 0.05)


def test_a_share_of_the_step_passes_a_change_that_the_margin_would_not() -> None:
    """A short case passes by its share of the step, with the reason; a large one by its margin."""
    of_much = StepShare(step=Phase.DECODE, step_ns=6e6, share_ratio=0.002)
    found = judged(*scaled(2.0), old=OLD, share=of_much)
    assert found.outcome is Outcome.PASS
    assert found.reason.startswith("+100.0 % (+97.9 % to +102.1 %), 0.017 % of decode: passes up to 0.2 % of it;")
    assert found.margin_ratio == found.resolution_ratio == pytest.approx(11.98, rel=0.01)
    assert found.step_share_ratio == 0.002
    found = judged(*scaled(2.0), old=OLD, share=StepShare(step=Phase.DECODE, step_ns=2e5, share_ratio=0.002))
    assert found.outcome is Outcome.REGRESSED
    assert ", margin 39.9 %, which is 0.2 % of decode;" in found.reason
    large = StepShare(step=Phase.PREFILL, step_ns=1e4, share_ratio=0.002)
    assert judged(*scaled(1.2), old=OLD, share=large) == judged(*scaled(1.2), old=OLD)
    wide = StepShare(step=Phase.PREFILL, step_ns=1e7, share_ratio=0.002)
    passed = judged(*OLD, old=OLD, share=wide)
    assert ", PASS at 5 %;" in passed.reason
    assert (passed.resolution_ratio, passed.step_share_ratio) == (0.05, None)
