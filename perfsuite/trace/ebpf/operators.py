"""Operators that the eBPF recorder saw, with their ends and what they counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.records.bpf_log_file import BpfFlag, BpfKind, BpfLog, Positions, Records
from perfsuite.records.engine_trace import NOTHING, EventFlag, Ints, Times
from perfsuite.records.trace_levels import TraceLevel
from perfsuite.trace.ebpf.intervals import NEVER_NS, Intervals, LevelChanges


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OperatorBegins:
    """Begins of operators thread by thread, each thread's in the order of time; all arrays are parallel."""

    #: Their records.
    record: Positions
    start_ns: Times
    tid: Ints
    #: Which of the graphs computed.
    evaluation: Ints

    @property
    def has_next(self) -> npt.NDArray[np.bool_]:
        """Whether the same thread begins another operator of the same graph behind it."""
        same: npt.NDArray[np.bool_] = self._has_next_on_thread.copy()
        same[:-1] &= self.evaluation[1:] == self.evaluation[:-1]
        return same

    @property
    def _has_next_on_thread(self) -> npt.NDArray[np.bool_]:
        return np.append(self.tid[1:] == self.tid[:-1], False)[: self.tid.size]

    def next_ns(self) -> Times:
        """Return when the same thread begins its next operator, of whichever graph."""
        return np.where(self._has_next_on_thread, np.append(self.start_ns, 0)[1:], NEVER_NS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OperatorEnds:
    """Ends of operators, parallel to their begins."""

    #: NOTHING where it is not known.
    end_ns: Times
    #: END_DERIVED and CUT.
    flags: Ints
    #: The record of the end, which has what was counted until then; NOTHING where there is none.
    record: Ints


def operator_ends(
    begins: OperatorBegins, arrivals: tuple[Positions, Records], graphs: Intervals, levels: LevelChanges
) -> OperatorEnds:
    """Find the ends of operators.

    An operator ends at its thread's last arrival at a barrier before the thread's next operator. Where no arrival was
    seen, its end is where the thread's next operator of the same graph begins, or where the graph ends. Where the
    recorder was asked meanwhile to record something else, it is not known.

    `arrivals` are records of arrivals at barriers and their positions, in the order of `begins`.
    """
    limit_ns = _limit_ns(begins, graphs)
    graph_end_ns = np.append(graphs.end_ns, NOTHING)[begins.evaluation]
    arrival, arrived_ns = _last_arrivals(begins, limit_ns, *arrivals)
    is_seen = arrival != NOTHING
    derived_ns = np.where(begins.has_next, np.append(begins.start_ns, 0)[1:], graph_end_ns)
    until_ns = np.where(derived_ns == NOTHING, limit_ns, derived_ns)
    is_unknown = levels.is_switched_within(TraceLevel.OPERATOR | TraceLevel.ENDS, begins.start_ns, until_ns)
    is_unknown |= (derived_ns == NOTHING) & ~is_seen
    is_cut = is_unknown | (~begins.has_next & (graph_end_ns == NOTHING))
    derived_record = np.where(begins.has_next, np.append(begins.record, 0)[1:], NOTHING)
    is_derived = ~is_seen & ~is_unknown
    return OperatorEnds(
        end_ns=np.where(is_unknown, NOTHING, np.where(is_seen, arrived_ns, derived_ns)),
        flags=is_derived * np.int64(EventFlag.END_DERIVED) + is_cut * np.int64(EventFlag.CUT),
        record=np.where(is_unknown, NOTHING, np.where(is_seen, arrival, derived_record)),
    )


def _limit_ns(begins: OperatorBegins, graphs: Intervals) -> Times:
    """Return before when each operator has ended: its thread's next operator, or the begin of the next graph."""
    graph_ns = np.append(graphs.start_ns, NEVER_NS)
    following = np.searchsorted(graphs.start_ns, begins.start_ns, side="right")
    return np.minimum(begins.next_ns(), np.where(begins.has_next, NEVER_NS, graph_ns[following]))


def _last_arrivals(
    begins: OperatorBegins, limit_ns: Times, positions: Positions, records: Records
) -> tuple[Ints, Times]:
    found, found_ns = (np.full(begins.tid.size, NOTHING, np.int64) for _ in range(2))
    for tid in np.unique(records["tid"]):
        arrivals = np.flatnonzero(records["tid"] == tid)
        own = np.flatnonzero(begins.tid == tid)
        last = np.searchsorted(records["ns"][arrivals], limit_ns[own]) - 1
        at = arrivals[np.maximum(last, 0)]
        is_own = (last >= 0) & (records["ns"][at] >= begins.start_ns[own])
        found[own] = np.where(is_own, positions[at], NOTHING)
        found_ns[own] = np.where(is_own, records["ns"][at], NOTHING)
    return found, found_ns


#: The bits of an OPERATOR_BEGIN's value that are the number of the thread.
_THREAD = 0xFFFF


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Operators:
    """Operators thread by thread, each thread's in the order of time; all arrays are parallel."""

    begin: Positions
    start_ns: Times
    #: NOTHING where it is not known.
    end_ns: Times
    tid: Ints
    #: Number of the thread among those that compute; 0 calls the backend.
    thread: Ints
    address: npt.NDArray[np.uint64]
    #: Which of the graphs computed.
    evaluation: Ints
    flags: npt.NDArray[np.uint8]
    #: One row each, NOTHING where nothing was counted.
    counters: Ints


def operators_of(log: BpfLog, graphs: Intervals, levels: LevelChanges) -> Operators:
    """Find the operators of a log, within the graphs that were computed and the levels that were recorded."""
    positions, records = _by_thread(log, BpfKind.OPERATOR_BEGIN, TraceLevel.OPERATOR, levels)
    start_ns, tid = records["ns"].astype(np.int64), records["tid"].astype(np.int64)
    own = graphs.containing(start_ns, tid)
    evaluation = np.where(own == NOTHING, graphs.containing(start_ns), own)  # a thread may compute for others
    begins = OperatorBegins(record=positions, start_ns=start_ns, tid=tid, evaluation=evaluation)
    ends = operator_ends(begins, _by_thread(log, BpfKind.BARRIER, TraceLevel.ENDS, levels), graphs, levels)
    counters, is_scaled = _counted(log, positions, ends.record)
    is_fused = (records["flags"] & BpfFlag.FUSED) != 0
    flags = ends.flags | np.where(is_scaled, EventFlag.MULTIPLEXED, 0) | np.where(is_fused, EventFlag.FUSED, 0)
    return Operators(
        begin=positions,
        start_ns=start_ns,
        end_ns=ends.end_ns,
        tid=tid,
        thread=records["value"] & _THREAD,
        address=records["subject"],
        evaluation=evaluation,
        flags=flags.astype(np.uint8),
        counters=counters,
    )


def _by_thread(log: BpfLog, kind: BpfKind, level: TraceLevel, levels: LevelChanges) -> tuple[Positions, Records]:
    positions = log.positions(kind)
    positions = positions[levels.is_on(level, log.records["ns"][positions])]
    records = log.records[positions]
    order = np.lexsort((records["ns"], records["tid"]))
    return positions[order], records[order]


def _counted(log: BpfLog, begin: Positions, end: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return what was counted between two records each, and whether it was scaled; NOTHING where it is not known."""
    counted = np.full((begin.size, len(log.counter_names)), NOTHING, np.int64)
    is_scaled = np.zeros(begin.size, np.bool_)
    if not log.counter_names:
        return counted, is_scaled
    known = np.flatnonzero(end != NOTHING)
    first, last = log.counters(begin[known]), log.counters(end[known])
    is_sound = (first >= 0) & (last >= first)
    counted[known] = np.where(is_sound, last - first, NOTHING)
    flags = log.records["flags"]
    is_scaled[known] = ((flags[begin[known]] | flags[end[known]]) & BpfFlag.MULTIPLEXED) != 0
    return counted, is_scaled
