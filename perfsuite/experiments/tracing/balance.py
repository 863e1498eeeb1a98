"""The verdict on the balance of a role: whether its threads share the work as the engine's rules have it."""

from __future__ import annotations

from perfsuite.expectation.thread_balance import LEAST_RUNS
from perfsuite.expectation.thread_rules import BalanceExpectation
from perfsuite.records.outcome import Finding, Outcome
from perfsuite.trace.statistics.thread_balance import RoleBalance
from perfsuite.units import format_count, format_ns

#: How much less balanced than expected a role may be: caches, and what else a core does, differ from thread to thread.
TOLERANCE_RATIO = 1.25

#: How many times what it takes on a thread without work an operator must take, and how long at least: of a shorter one
#: the recorder's own time and the first access to what another core has written hide how the work is shared. They are
#: a smaller part of the difference between all and nothing.
LEAST_RUN_RATIO = 20
LEAST_ALONE_NS, LEAST_SHARED_NS = 2_000, 5_000


def judge_balance(
    found: RoleBalance | None, expected: BalanceExpectation, *, has_ends: bool, least_thread_ns: int
) -> Finding:
    """Judge one role.

    SLOW where its threads share the work less evenly than the rules have it. IMPOSSIBLE where the rules give all work
    to one thread and several are as busy: then waiting was taken for work. INVALID where the role, or the ends of its
    threads, were not recorded; INCONCLUSIVE where it ran less often than `LEAST_RUNS`, or is too short: shorter
    than `LEAST_RUN_RATIO` times `least_thread_ns`, what an operator takes on a thread that has next to nothing to do.
    """
    if not has_ends:
        return Finding(outcome=Outcome.INVALID, reason="the recorder saw no ends of operators on their threads")
    if found is None:
        return Finding(outcome=Outcome.INVALID, reason="no such operator was recorded")
    if found.n_threads != expected.n_threads:
        seen = f"{found.n_threads} threads computed it, expected {expected.n_threads}"
        return Finding(outcome=Outcome.INVALID, reason=seen)
    text = _text(found, expected)
    if short := _too_little(found, _least_ns(expected, least_thread_ns)):
        return Finding(outcome=Outcome.INCONCLUSIVE, reason=f"{text}; {short}")
    if expected.is_on_one_thread and found.balance_ratio < expected.balance_ratio / TOLERANCE_RATIO:
        wrong = f"{text}; the rules give all rows to one thread, so the others' time is waiting"
        return Finding(outcome=Outcome.IMPOSSIBLE, reason=wrong)
    if found.balance_ratio > expected.limit_ratio * TOLERANCE_RATIO:
        return Finding(outcome=Outcome.SLOW, reason=f"{text}; the threads share it less evenly than the rules have it")
    return Finding(outcome=Outcome.PASS, reason=text)


def _least_ns(expected: BalanceExpectation, least_thread_ns: int) -> int:
    least_ns = LEAST_ALONE_NS if expected.is_on_one_thread else LEAST_SHARED_NS
    return max(least_ns, LEAST_RUN_RATIO * least_thread_ns)


def _too_little(found: RoleBalance, least_ns: int) -> str | None:
    if found.n_runs < LEAST_RUNS:
        return f"only {format_count(found.n_runs, 'run')} to judge by, expected {LEAST_RUNS} and more"
    if found.busiest_ns < least_ns:
        return f"{format_ns(found.busiest_ns)} a run is too short to judge, expected {format_ns(least_ns)} and more"
    return None


def _text(found: RoleBalance, expected: BalanceExpectation) -> str:
    alone = "; one thread works alone" if found.is_on_one_thread else ""
    return (
        f"busiest of {found.n_threads} threads over their mean {found.balance_ratio:.2f}, "
        f"expected {expected.balance_ratio:.2f} and {expected.limit_ratio * TOLERANCE_RATIO:.2f} at most{alone}"
    )
