"""What the events of an eBPF recording refer to, and what its probes cost: the small tables at the edge of a log."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from perfsuite.records.bpf_log import BpfKind, BpfLog
from perfsuite.records.bpf_log_file import PROBE_TAIL, terminated
from perfsuite.records.engine_trace import NOTHING, Events, ProbeCost, TracedThread
from perfsuite.trace.ebpf.intervals import Intervals
from perfsuite.trace.ebpf.operators import Operators

#: Behind all threads that compute.
_LAST = 1 << 16


def threads_of(log: BpfLog, events: Events, evaluations: Intervals, operators: Operators) -> tuple[TracedThread, ...]:
    """Return the threads whose ids events have: first those that compute, by their number, then the others."""
    numbers = {int(tid): 0 for tid in np.unique(evaluations.tid)}
    tids, places = np.unique(operators.tid, return_index=True)
    numbers |= dict(zip(tids.tolist(), operators.thread[places].tolist(), strict=True))
    named = [int(tid) for tid in np.unique(events["thread"]) if tid != NOTHING]
    named.sort(key=lambda tid: (numbers.get(tid, _LAST), tid))
    names = _thread_names(log)
    return tuple(TracedThread(tid=tid, name=names.get(tid, "")) for tid in named)


def number_threads(events: Events, threads: tuple[TracedThread, ...]) -> None:
    """Put each thread's place where its id was."""
    tids = np.array([each.tid for each in threads], np.int64)
    order = np.argsort(tids)
    known = events["thread"] != NOTHING
    events["thread"][known] = order[np.searchsorted(tids[order], events["thread"][known])]


def probe_costs_of(log: BpfLog) -> Iterator[ProbeCost]:
    """Yield what the kernel says that each program cost."""
    for position in log.positions(BpfKind.PROBE):
        n_runs, name = PROBE_TAIL.unpack_from(log.tail(position))
        run_time_ns = int(log.records["subject"][position])
        yield ProbeCost(name=terminated(name), n_runs=n_runs, run_time_ns=run_time_ns)


def _thread_names(log: BpfLog) -> dict[int, str]:
    positions = log.positions(BpfKind.THREAD_NAME)
    tids = log.records["tid"][positions].tolist()
    return {tid: terminated(log.tail(position)) for tid, position in zip(tids, positions, strict=True)}
