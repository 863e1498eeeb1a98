"""The verdict on the balance of a role."""

from __future__ import annotations

from typing import Any

import pytest

from perfsuite.expectation.thread_rules import BalanceExpectation
from perfsuite.experiments.tracing.balance import judge_balance
from perfsuite.records.events import Phase
from perfsuite.records.outcome import Finding, Outcome
from perfsuite.trace.statistics.thread_balance import RoleBalance

SHARED = BalanceExpectation(n_threads=4, balance_ratio=1.0, piece_ratio=0.25)
ALONE = BalanceExpectation(n_threads=4, balance_ratio=4.0, returns_at_once=True)


def found(balance_ratio: float, **fields: Any) -> RoleBalance:
    """Return the balance of a role that ran long and often enough."""
    usual = {"phase": Phase.DECODE, "role": "ffn_up", "op": "MUL_MAT", "n_threads": 4, "n_runs": 100}
    return RoleBalance(balance_ratio=balance_ratio, **{**usual, "busiest_ns": 50_000.0, **fields})


def balance_judged(role: RoleBalance | None, expected: BalanceExpectation = SHARED, **fields: Any) -> Finding:
    """Judge a role of a recorder whose own time is 100 ns."""
    return judge_balance(role, expected, **{"has_ends": True, "least_thread_ns": 100, **fields})


@pytest.mark.parametrize(
    ("ratio", "outcome"), [(1.0, Outcome.PASS), (1.5, Outcome.PASS), (1.6, Outcome.SLOW), (4.0, Outcome.SLOW)]
)
def test_a_shared_role_must_be_shared(ratio: float, outcome: Outcome) -> None:
    """Beyond the last piece and the tolerance it is less even than the rules have it."""
    assert balance_judged(found(ratio)).outcome is outcome


@pytest.mark.parametrize(("ratio", "outcome"), [(3.9, Outcome.PASS), (3.3, Outcome.PASS), (1.0, Outcome.IMPOSSIBLE)])
def test_a_lone_role_cannot_be_shared(ratio: float, outcome: Outcome) -> None:
    """Where the rules give all rows to one thread and all seem busy, waiting was taken for work."""
    assert balance_judged(found(ratio), ALONE).outcome is outcome


def test_a_meeting_on_the_way_hides_who_works() -> None:
    """In a product that one thread computes alone the others wait inside, so nothing is impossible."""
    expected = BalanceExpectation(n_threads=4, balance_ratio=4.0)
    assert balance_judged(found(1.0), expected).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("role", "fields", "outcome", "reason"),
    [
        (None, {}, Outcome.INVALID, "no such operator"),
        (found(1.0), {"has_ends": False}, Outcome.INVALID, "no ends"),
        (found(1.0, n_threads=2), {}, Outcome.INVALID, "2 threads computed it, expected 4"),
        (found(4.0, n_runs=3), {}, Outcome.INCONCLUSIVE, "only 3 runs"),
        (found(4.0, busiest_ns=3_000.0), {}, Outcome.INCONCLUSIVE, "too short"),
        (found(4.0), {"least_thread_ns": 10_000}, Outcome.INCONCLUSIVE, "too short"),
    ],
)
def test_what_cannot_be_told_is_not_judged(
    role: RoleBalance | None, fields: dict[str, Any], outcome: Outcome, reason: str
) -> None:
    """Roles that were not recorded, too short or too rare neither pass nor fail, and say why."""
    finding = balance_judged(role, **fields)
    assert finding.outcome is outcome
    assert reason in finding.reason
