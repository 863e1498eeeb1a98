"""The order of outcomes."""

from __future__ import annotations

import itertools

import pytest

from perfsuite.records.outcome import ORDER_OF_WEIGHT, Finding, Outcome, foremost, is_nothing_judged

_ORDER = (
    "invalid",
    "impossible",
    "incomparable",
    "regressed",
    "slow",
    "inconclusive",
    "new",
    "improved",
    "pass",
)


def test_the_order_is_the_one_of_the_design() -> None:
    """Outcomes take precedence in the documented order."""
    assert tuple(outcome.value for outcome in Outcome) == _ORDER


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(Outcome, 2)))
def test_the_earlier_of_two_wins_whatever_their_order(first: Outcome, second: Outcome) -> None:
    """Of two findings the one with the earlier outcome is told."""
    findings = [Finding(outcome=second, reason="b"), Finding(outcome=first, reason="a")]
    assert foremost(findings).outcome is first
    assert foremost(reversed(findings)).outcome is first


def test_only_three_outcomes_fail() -> None:
    """REGRESSED, SLOW and IMPOSSIBLE fail; nothing else does."""
    assert {outcome.value for outcome in Outcome if outcome.fails} == {"regressed", "slow", "impossible"}


def test_what_was_not_decided_is_neither_failed_nor_passed() -> None:
    """INVALID, INCOMPARABLE, INCONCLUSIVE and NEW do not decide."""
    assert {outcome.value for outcome in Outcome if not outcome.decides} == {
        "invalid",
        "incomparable",
        "inconclusive",
        "new",
    }


def test_the_order_of_weight_has_every_outcome() -> None:
    """Each once, those that fail first and a pass last."""
    assert sorted(ORDER_OF_WEIGHT) == sorted(Outcome)
    fails = [outcome.fails for outcome in ORDER_OF_WEIGHT]
    assert fails == sorted(fails, reverse=True)
    assert ORDER_OF_WEIGHT[-1] is Outcome.PASS


@pytest.mark.parametrize(
    ("outcomes", "is_none"),
    [((), False), (("invalid", "incomparable", "inconclusive"), True), (("invalid", "new"), False)]
    + [(("inconclusive", outcome), False) for outcome in ("pass", "improved", "regressed", "slow", "impossible")],
)
def test_one_case_that_says_something_is_enough(outcomes: tuple[str, ...], is_none: bool) -> None:
    """Nothing is judged where no case passes, fails, improved or is new; a run without cases is none of these."""
    assert is_nothing_judged(map(Outcome, outcomes)) is is_none
