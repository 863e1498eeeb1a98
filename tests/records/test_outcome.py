"""The order of outcomes."""

from __future__ import annotations

import itertools

import pytest

from perfsuite.records.outcome import ORDER_OF_WEIGHT, Finding, Outcome, foremost, is_nothing_judged

_ORDER = ("invalid", "impossible", "incomparable", "regressed", "slow")
_ORDER += ("suspect", "inconclusive", "new", "improved", "pass")


def test_outcomes_are_ordered_as_designed() -> None:
    """By precedence and by weight; REGRESSED, SLOW and IMPOSSIBLE fail, SUSPECT alarms, five decide nothing."""
    assert tuple(outcome.value for outcome in Outcome) == _ORDER
    assert {outcome.value for outcome in Outcome if outcome.fails} == {"regressed", "slow", "impossible"}
    assert [outcome for outcome in Outcome if outcome.alarms and not outcome.fails] == [Outcome.SUSPECT]
    assert {outcome.value for outcome in Outcome if not outcome.decides} == {
        "invalid",
        "suspect",
        "incomparable",
        "inconclusive",
        "new",
    }
    assert sorted(ORDER_OF_WEIGHT) == sorted(Outcome)
    weights = [outcome.fails + outcome.alarms for outcome in ORDER_OF_WEIGHT]
    assert weights == sorted(weights, reverse=True)
    assert ORDER_OF_WEIGHT[-1] is Outcome.PASS


def test_the_earlier_of_two_wins_whatever_their_order() -> None:
    for first, second in itertools.combinations(Outcome, 2):
        findings = [Finding(outcome=second, reason="b"), Finding(outcome=first, reason="a")]
        assert foremost(findings).outcome is foremost(reversed(findings)).outcome is first


@pytest.mark.parametrize(
    ("outcomes", "is_none"),
    [((), False), (("invalid", "incomparable", "inconclusive"), True)]
    + [(("invalid", each), False) for each in _ORDER if each not in ("invalid", "incomparable", "inconclusive")],
)
def test_one_case_that_says_something_is_enough(outcomes: tuple[str, ...], is_none: bool) -> None:
    """Nothing is judged where no case passes, fails, is suspect, improved or new; a run without cases is neither."""
    assert is_nothing_judged(map(Outcome, outcomes)) is is_none
