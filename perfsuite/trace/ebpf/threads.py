"""What threads did between two switches, from the eBPF recorder's scheduling records."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from perfsuite.records.bpf_log import BpfKind, BpfLog, Records
from perfsuite.records.engine_trace import NOTHING, EventFlag, EventKind, Events, ThreadState, new_events
from perfsuite.records.trace_levels import TraceLevel
from perfsuite.trace.ebpf.intervals import NEVER_NS, LevelChanges

#: ``prev_state`` of a thread that was pre-empted: 0, or what ``sched_switch`` prints as ``R+`` (TASK_REPORT_MAX).
_PREEMPTED = (0, 0x100)


def thread_states(log: BpfLog, levels: LevelChanges, last_ns: int) -> Events:
    """Return the states of the target's threads; `thread` holds the thread's id.

    A thread that was switched out while it could run is runnable, any other is idle; one that is woken is runnable
    (ProfInfer, section on the timeline view, with the two states the right way round). A state ends where the next one
    begins, where threads are no longer recorded, or at `last_ns`.
    """
    records = log.records[log.positions(BpfKind.SWITCH_OUT, BpfKind.SWITCH_IN, BpfKind.WOKEN)]
    records = records[levels.is_on(TraceLevel.THREADS, records["ns"])]
    records = records[np.lexsort((records["ns"], records["tid"]))]
    records = records[_matters(records)]
    states = _events(records)
    same = np.append(records["tid"][1:] == records["tid"][:-1], False)[: records.size]
    next_ns = np.where(same, np.append(records["ns"], 0)[1:], NEVER_NS)
    off_ns = np.append(levels.switched(TraceLevel.THREADS), NEVER_NS)
    off_ns = off_ns[np.searchsorted(off_ns[:-1], states["start_ns"], side="right")]
    end_ns = np.minimum(np.minimum(next_ns, off_ns), np.maximum(last_ns, states["start_ns"]))
    states["end_ns"] = end_ns
    states["flags"] = np.where(end_ns < next_ns, EventFlag.CUT, 0)
    return np.concatenate([states, _running_before(records, levels)])


def _matters(records: Records) -> npt.NDArray[np.bool_]:
    """Mark the records that change a state: one that is woken before it is idle stays as it is."""
    is_woken = records["kind"] == BpfKind.WOKEN
    change = np.where(is_woken, 0, np.arange(records.size))
    before = np.maximum.accumulate(change) if records.size else change
    known = ~is_woken[before] & (records["tid"][before] == records["tid"])
    slept = (records["kind"][before] == BpfKind.SWITCH_OUT) & ~np.isin(records["value"][before], _PREEMPTED)
    follows = np.append(False, is_woken[:-1] & (records["tid"][1:] == records["tid"][:-1]))[: records.size]
    matters: npt.NDArray[np.bool_] = ~is_woken | ((slept | ~known) & ~follows)
    return matters


def _events(records: Records) -> Events:
    is_out, is_in = records["kind"] == BpfKind.SWITCH_OUT, records["kind"] == BpfKind.SWITCH_IN
    is_idle = is_out & ~np.isin(records["value"], _PREEMPTED)
    has_cpu = (is_in | (is_out & ~is_idle)) & (records["cpu"] < 1 << 15)
    return new_events(
        EventKind.THREAD_STATE,
        records.size,
        start_ns=records["ns"],
        thread=records["tid"].astype(np.int64),
        value=np.where(is_in, ThreadState.RUNNING, np.where(is_idle, ThreadState.IDLE, ThreadState.RUNNABLE)),
        cpu=np.where(has_cpu, records["cpu"].astype(np.int64), NOTHING),
    )


def _running_before(records: Records, levels: LevelChanges) -> Events:
    """Return what threads did that are switched out before anything else is known of them: they ran from the start."""
    is_first = np.append(True, records["tid"][1:] != records["tid"][:-1])[: records.size]
    leaving = records[is_first & (records["kind"] == BpfKind.SWITCH_OUT)]
    start_ns = np.full(leaving.size, levels.start_ns, np.int64)
    is_known = levels.is_on(TraceLevel.THREADS, start_ns)
    is_known &= ~levels.is_switched_within(TraceLevel.THREADS, start_ns, leaving["ns"])
    leaving = leaving[is_known & (leaving["ns"] > start_ns)]
    states = _events(leaving)
    states["value"], states["flags"] = ThreadState.RUNNING, EventFlag.CUT
    states["start_ns"], states["end_ns"] = levels.start_ns, leaving["ns"]
    states["cpu"] = np.where(leaving["cpu"] < 1 << 15, leaving["cpu"].astype(np.int64), NOTHING)
    return states
