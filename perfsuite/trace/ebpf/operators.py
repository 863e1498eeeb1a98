"""Operators that the eBPF recorder saw, with their ends and what they counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.records.bpf_log import BpfFlag, BpfKind, BpfLog, Positions, Records
from perfsuite.records.engine_trace import NOTHING, EventFlag, Ints, Times
from perfsuite.records.trace_levels import TraceLevel
from perfsuite.trace.ebpf.ends import OperatorBegins, operator_ends
from perfsuite.trace.ebpf.intervals import Intervals
from perfsuite.trace.ebpf.levels import LevelChanges

#: The bits of an OPERATOR_BEGIN's value that are the number of the thread.
_THREAD = 0xFFFF


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Operators:
    """Operators thread by thread, each thread's in the order of time; all arrays are parallel."""

    #: Records of the begins.
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
    evaluation = _evaluations(graphs, start_ns, tid)
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
    """Return the records of a kind from when all of them were recorded, each thread's in the order of time."""
    positions = log.positions(kind)
    positions = positions[levels.is_on(level, log.records["ns"][positions])]
    records = log.records[positions]
    order = np.lexsort((records["ns"], records["tid"]))
    return positions[order], records[order]


def _evaluations(graphs: Intervals, start_ns: Times, tid: Ints) -> Ints:
    """Return the graph of each operator: its thread's own, and of a thread that computes for others the latest."""
    own = graphs.containing(start_ns, tid)
    return np.where(own == NOTHING, graphs.containing(start_ns), own)


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
