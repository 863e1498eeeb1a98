"""The order of outcomes."""

from __future__ import annotations

import itertools

import pytest

from perfsuite.records.outcome import ORDER_OF_WEIGHT, Finding, Outcome, foremost, is_nothing_judged

_ORDER = ("invalid", "impossible", "incomparable", "regressed", "slow", "inconclusive", "new", "improved", "pass")


def test_outcomes_are_ordered_as_designed() -> None:
    """By precedence and by weight; REGRESSED, SLOW and IMPOSSIBLE fail, four decide nothing."""
    assert tuple(outcome.value for outcome in Outcome) == _ORDER
    assert {outcome.value for outcome in Outcome if outcome.fails} == {"regressed", "slow", "impossible"}
    assert {outcome.value for outcome in Outcome if not outcome.decides} == {
        "invalid",
        "incomparable",
        "inconclusive",
        "new",
    }
    assert sorted(ORDER_OF_WEIGHT) == sorted(Outcome)
    fails = [outcome.fails for outcome in ORDER_OF_WEIGHT]
    assert fails == sorted(fails, reverse=True)
    assert ORDER_OF_WEIGHT[-1] is Outcome.PASS


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(Outcome, 2)))
def test_the_earlier_of_two_wins_whatever_their_order(first: Outcome, second: Outcome) -> None:
    """Of two findings the one with the earlier outcome is reported."""
    findings = [Finding(outcome=second, reason="b"), Finding(outcome=first, reason="a")]
    assert foremost(findings).outcome is first
    assert foremost(reversed(findings)).outcome is first


@pytest.mark.parametrize(
    ("outcomes", "is_none"),
    [((), False), (("invalid", "incomparable", "inconclusive"), True), (("invalid", "new"), False)]
    + [(("inconclusive", outcome), False) for outcome in ("pass", "improved", "regressed", "slow", "impossible")],
)
def test_one_case_that_says_something_is_enough(outcomes: tuple[str, ...], is_none: bool) -> None:
    """Nothing is judged where no case passes, fails, improved or is new; a run without cases is none of these."""
    assert is_nothing_judged(map(Outcome, outcomes)) is is_none
