"""What the eBPF recorder lost, and which evaluations that makes doubtful."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from perfsuite.records.bpf_log import BpfKind, BpfLog
from perfsuite.records.engine_trace import EventFlag
from perfsuite.records.trace_levels import TraceLevel
from perfsuite.trace.ebpf.intervals import Intervals
from perfsuite.trace.ebpf.levels import LevelChanges


def n_lost_of(log: BpfLog) -> int:
    """Return how many events found no room."""
    ends = log.positions(BpfKind.END)
    told = _n_told(log)
    return max(told, int(log.records["subject"][ends[-1]])) if ends.size else told


def doubtful_evaluations(log: BpfLog, evaluations: Intervals, levels: LevelChanges) -> npt.NDArray[np.bool_]:
    """Mark the evaluations some of whose operators may be missing.

    The recorder came or went in the middle of them, was told to record something else, or lost events at that time.
    """
    last_ns = evaluations.last_ns
    doubtful: npt.NDArray[np.bool_] = (evaluations.flags & EventFlag.CUT) != 0
    doubtful |= levels.is_switched_within(TraceLevel.OPERATOR, evaluations.start_ns, last_ns)
    for first_ns, until_ns in _losses(log):
        doubtful |= (evaluations.start_ns <= until_ns) & (last_ns >= first_ns)
    return doubtful


def affected(doubtful: npt.NDArray[np.bool_]) -> str:
    """Say what lost events make doubtful."""
    found = np.flatnonzero(doubtful)
    if not found.size:
        return "none of them within a graph"
    which = f"evaluations {found[0]} to {found[-1]}" if found.size > 1 else f"evaluation {found[0]}"
    return f"operators may be missing in {which}, and those before them look longer than they were"


def last_ns_of(log: BpfLog) -> int:
    """Return the time of the last record."""
    return int(log.records["ns"].max(initial=log.start_ns))


def _n_told(log: BpfLog) -> int:
    return int(log.records["subject"][log.positions(BpfKind.LOST)].sum())


def _losses(log: BpfLog) -> list[tuple[int, int]]:
    """Return the times between which events were lost."""
    records = log.records[log.positions(BpfKind.LOST)]
    until_ns = sorted(records["ns"][records["subject"] > 0].tolist())
    losses = list(zip([log.start_ns, *until_ns[:-1]], until_ns, strict=True)) if until_ns else []
    if n_lost_of(log) > _n_told(log):
        losses.append((until_ns[-1] if until_ns else log.start_ns, last_ns_of(log)))
    return losses
