"""Operators are judged exactly, whole phases by their margin."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.verdict.counted import PHASE_MARGIN_RATIO, count_changes
from tests.counted_work import WORK, work


def test_the_same_work_has_no_change() -> None:
    """Another build that does the same is the same."""
    assert count_changes(WORK, replace(WORK, bundle="another", llama="a checkout")) == ()


def test_one_instruction_more_is_a_change() -> None:
    """Of an operator; the case names it, and the metric."""
    (change,) = count_changes(WORK, work(instructions=1001))
    assert (change.case_id, change.metric) == ("counted/tiny-p16-g4/prefill/attn_q", "instructions")
    assert (change.before, change.now, change.is_more) == (1000, 1001, True)
    assert change.ratio == pytest.approx(0.001)


def test_less_is_a_change_that_is_not_more() -> None:
    """It is reported, and no regression."""
    (change,) = count_changes(WORK, work(branches=999))
    assert not change.is_more


def test_work_where_there_was_none() -> None:
    """An allocation that was not there has no ratio."""
    (change,) = count_changes(WORK, work(allocations=1))
    assert (change.metric, change.is_more, change.ratio) == ("allocations", True, None)


@pytest.mark.parametrize(("share", "n_changes"), [(PHASE_MARGIN_RATIO, 0), (2 * PHASE_MARGIN_RATIO, 1)])
def test_a_whole_phase_has_a_margin(share: float, n_changes: int) -> None:
    """Two runs of one build differ by as much."""
    whole, operator = WORK.rows
    more = replace(WORK, rows=(replace(whole, instructions=round(1_000_000 * (1 + share))), operator))
    assert len(count_changes(WORK, more)) == n_changes


def test_an_operator_that_came_or_went() -> None:
    """Each of its counts is a change; the one that came is more work."""
    less = replace(WORK, rows=WORK.rows[:1])
    assert {each.is_more for each in count_changes(WORK, less)} == {False}
    came = count_changes(less, WORK)
    assert [each.now for each in came].count(1000) == 7
    assert any(each.is_more for each in came)


@pytest.mark.parametrize("field", ["model", "model_digest", "compiler", "processor"])
def test_different_work_is_not_compared(field: str) -> None:
    """The message says what differs, and what to do."""
    with pytest.raises(MeasurementError, match=rf"^{field} is other, and was .*--record"):
        count_changes(WORK, replace(WORK, **{field: "other"}))
