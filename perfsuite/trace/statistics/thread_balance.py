"""How evenly threads share the work: each thread's time, and each role's busiest thread over the mean.

For a role whose runs r keep the thread t busy for b_rt, n threads in all:

    balance = median over r of max_t b_rt / (sum_t b_rt / n)      1: all work alike, n: one works alone

A thread that is pre-empted in a few runs therefore does not show.

This needs the threads' own starts and ends. Where a recorder derives either from the operator before or behind,
waiting is in the time, and threads seem busy throughout; then nothing is reported. Nor is it of a device's trace, whose
operators are the host's enqueueing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfsuite.records.engine_trace import EngineTrace, EventFlag, EventKind, Ints, TraceRecorder
from perfsuite.records.events import Phase
from perfsuite.trace.statistics.operator_runs import OperatorRuns, OperatorTable, operator_events

#: A role runs on one thread where the others are busy for less than this part of that one's time, on average.
_IDLE_RATIO = 0.2

#: Where more times than these are derived, those of threads show nothing.
_MOST_DERIVED_RATIO = 0.01
_DERIVED = EventFlag.START_DERIVED | EventFlag.END_DERIVED


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadShare:
    """One thread of the engine within the evaluations that it took part in."""

    tid: int
    name: str
    n_operators: int
    busy_ns: int
    #: Between its operators: at barriers, and while it was pre-empted there.
    waiting_ns: int

    @property
    def busy_ratio(self) -> float:
        total_ns = self.busy_ns + self.waiting_ns
        return self.busy_ns / total_ns if total_ns else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleBalance:
    """How evenly the threads share one role of a phase."""

    phase: Phase
    role: str
    op: str
    n_threads: int
    n_runs: int
    #: Median time of the busiest thread of a run.
    busiest_ns: float
    #: Busiest thread of a run over the mean of all, the median of all runs.
    balance_ratio: float

    @property
    def is_on_one_thread(self) -> bool:
        others = self.n_threads / self.balance_ratio - 1.0
        return self.n_threads > 1 and others < _IDLE_RATIO * (self.n_threads - 1)

    @property
    def idle_ns(self) -> int:
        """What the other threads could have worked beside the busiest one, all of them and all runs together."""
        return round(self.n_runs * self.busiest_ns * self.n_threads * (1.0 - 1.0 / self.balance_ratio))


def thread_shares(trace: EngineTrace) -> tuple[ThreadShare, ...]:
    """Return the threads that computed operators, the busiest first; none where their own times are not known."""
    at = operator_events(trace, EventKind.OPERATOR)
    events = trace.events
    is_derived = events["flags"][at] & _DERIVED != 0
    if trace.recorder is TraceRecorder.OPENCL or not at.size or is_derived.mean() > _MOST_DERIVED_RATIO:
        return ()
    thread, evaluation = events["thread"][at], events["evaluation"][at]
    start_ns, end_ns = events["start_ns"][at], events["end_ns"][at]
    busy_ns = np.bincount(thread, weights=end_ns - start_ns)
    spans_ns = _evaluation_spans(thread, evaluation, start_ns, end_ns)
    counts = np.bincount(thread)
    found = [
        ThreadShare(
            tid=trace.threads[each].tid,
            name=trace.threads[each].name,
            n_operators=int(counts[each]),
            busy_ns=int(busy_ns[each]),
            waiting_ns=max(0, int(spans_ns[each] - busy_ns[each])),
        )
        for each in np.flatnonzero(counts).tolist()
    ]
    return tuple(sorted(found, key=lambda each: (-each.busy_ns, each.tid)))


def role_balances(runs: OperatorRuns, table: OperatorTable) -> tuple[RoleBalance, ...]:
    """Return the balance of each role of each phase, what costs the most idle time first.

    Runs with derived ends, and those that only one thread took part in while others did in the rest, are left out.
    """
    n_threads = int(np.median(runs.n_threads)) if len(runs) else 0
    if n_threads < 2 or runs.is_device:
        return ()
    labels, of_run = table.labelled(runs, lambda operator, phase: (phase, operator.role, operator.op))
    judged = np.flatnonzero(runs.has_ends & (runs.n_threads == n_threads) & (runs.busy_ns > 0))
    judged = judged[np.argsort(of_run[judged], kind="stable")]
    ratios = runs.busiest_ns[judged] * n_threads / runs.busy_ns[judged]
    ends = np.cumsum(np.bincount(of_run[judged], minlength=len(labels)))[:-1]
    parts = zip(np.split(runs.busiest_ns[judged], ends), np.split(ratios, ends), strict=True)
    found = [
        RoleBalance(
            phase=phase,
            role=role,
            op=op,
            n_threads=n_threads,
            n_runs=int(busiest_ns.size),
            busiest_ns=float(np.median(busiest_ns)),
            balance_ratio=float(np.median(each)),
        )
        for (phase, role, op), (busiest_ns, each) in zip(labels, parts, strict=True)
        if busiest_ns.size
    ]
    return tuple(sorted(found, key=lambda each: (-each.idle_ns, each.role)))


def least_thread_time(runs: OperatorRuns) -> int:
    """Return what an operator takes on a thread that has next to nothing to do, the recorder's own time: ns.

    It is the 5th percentile of the mean time of the threads beside the busiest one; 0 where there are none.
    """
    several = runs.has_ends & (runs.n_threads > 1)
    if not several.any():
        return 0
    others = (runs.busy_ns[several] - runs.busiest_ns[several]) / (runs.n_threads[several] - 1)
    return round(float(np.percentile(others, 5.0)))


def _evaluation_spans(thread: Ints, evaluation: Ints, start_ns: Ints, end_ns: Ints) -> Ints:
    numbers, where = np.unique(evaluation, return_inverse=True)
    first, last = np.full(numbers.size, np.iinfo(np.int64).max), np.zeros(numbers.size, dtype=np.int64)
    np.minimum.at(first, where, start_ns)
    np.maximum.at(last, where, end_ns)
    pairs = np.unique(thread.astype(np.int64) * numbers.size + where)
    spans: Ints = np.bincount(pairs // numbers.size, weights=(last - first)[pairs % numbers.size]).astype(np.int64)
    return spans
