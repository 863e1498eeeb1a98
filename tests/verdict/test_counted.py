"""Operators are judged exactly, whole phases by their margin."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.records.counts import CountedWork
from perfsuite.records.outcome import Outcome
from perfsuite.verdict.counted import PHASE_MARGIN_RATIO, CountChange, beside_time, count_changes, judge_count
from tests.counted_work import WORK, work

OPERATOR = "counted/tiny/p16-g4/prefill/attn_q"


def differing(before: CountedWork, now: CountedWork) -> list[CountChange]:
    return [change for change in count_changes(before, now).values() if change.differs]


def test_one_more_or_less_of_anything_is_a_change() -> None:
    """Of an operator; the case names it, and the metric. Another build that does the same is the same."""
    assert differing(WORK, replace(WORK, bundle="another", llama="a checkout")) == []
    (change,) = differing(WORK, work(instructions=1001))
    assert (change.case_id, change.metric) == (f"{OPERATOR}/instructions", "instructions")
    assert (change.before, change.now, change.is_more) == (1000, 1001, True)
    assert change.ratio == pytest.approx(0.001)
    (change,) = differing(WORK, work(branches=999))
    assert not change.is_more
    (change,) = differing(WORK, work(allocations=1))
    assert (change.metric, change.is_more, change.ratio) == ("allocations", True, None)


@pytest.mark.parametrize(
    ("share", "reason"),
    [
        (PHASE_MARGIN_RATIO, "1,000,500 instructions, within 0.05% of 1,000,000 before"),
        (2 * PHASE_MARGIN_RATIO, "1,001,000 instructions, 1,000,000 before (+0.100%)"),
    ],
)
def test_a_whole_phase_has_a_margin(share: float, reason: str) -> None:
    """Two runs of one build differ by as much."""
    whole, operator = WORK.rows
    more = replace(WORK, rows=(replace(whole, instructions=round(1_000_000 * (1 + share))), operator))
    found = judge_count(count_changes(WORK, more)["counted/tiny/p16-g4/prefill/instructions"])
    assert (found.outcome is Outcome.PASS, found.reason) == (share == PHASE_MARGIN_RATIO, reason)
    assert len(differing(WORK, more)) == (share > PHASE_MARGIN_RATIO)


def test_an_operator_that_came_or_went() -> None:
    less = replace(WORK, rows=WORK.rows[:1])
    assert {each.is_more for each in differing(WORK, less)} == {False}
    came = differing(less, WORK)
    assert [each.now for each in came].count(1000) == 7
    assert any(each.is_more for each in came)


@pytest.mark.parametrize("field", ["model_digest", "settings"])
def test_different_work_is_not_compared(field: str) -> None:
    with pytest.raises(MeasurementError, match=rf"^{field} is other, and was .*record new ones"):
        count_changes(WORK, replace(WORK, **{field: "other"}))


@pytest.mark.parametrize(
    ("before", "now", "outcome", "reason"),
    [
        (work(), work(), Outcome.PASS, "1,000 instructions, as before"),
        (work(), work(instructions=1001), Outcome.REGRESSED, "1,001 instructions, 1,000 before (+0.100%)"),
        (work(), work(instructions=900), Outcome.IMPROVED, "900 instructions, 1,000 before (-10.000%)"),
        (
            work(),
            replace(WORK, rows=WORK.rows[:1]),
            Outcome.IMPROVED,
            "is not there any more; it was 1,000 instructions",
        ),
        (replace(WORK, rows=WORK.rows[:1]), work(), Outcome.REGRESSED, "1,000 instructions, where there was nothing"),
    ],
)
def test_the_verdict_on_one_count(before: CountedWork, now: CountedWork, outcome: Outcome, reason: str) -> None:
    """One instruction decides; the reason has both counts."""
    judgement = judge_count(count_changes(before, now)[f"{OPERATOR}/instructions"])
    assert (judgement.outcome, judgement.reason) == (outcome, reason)


@pytest.mark.parametrize(
    ("timed", "now", "told"),
    [
        (Outcome.REGRESSED, work(instructions=1500), "more work (instructions +50.00%)"),
        (Outcome.REGRESSED, work(allocations=3), "more work (allocations from 0)"),
        (Outcome.REGRESSED, work(), "the same work, slower: memory, placement or clock"),
        (Outcome.REGRESSED, work(instructions=900), ""),
        (Outcome.PASS, work(instructions=1500), "more work (instructions +50.00%), not yet slower"),
        (Outcome.PASS, work(), ""),
        (Outcome.INVALID, work(instructions=1500), ""),
        (Outcome.IMPROVED, work(instructions=500), "less work (instructions -50.00%)"),
        (Outcome.IMPROVED, work(instructions=1500), ""),
        (Outcome.IMPROVED, work(), "the same work, faster: memory, placement or clock"),
    ],
)
def test_counts_say_whether_a_time_is_of_the_same_work(timed: Outcome, now: CountedWork, told: str) -> None:
    assert beside_time(timed, count_changes(WORK, now).values()) == told
