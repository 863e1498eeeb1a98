"""Time by kernel: execution, and apart from it what a launch waited for.

Of one command with the times QUEUED, SUBMIT, START and END of its device's clock, ns:

    queueing  = SUBMIT - QUEUED    from the program's call to when the driver hands the command to the device
    dispatch  = START - SUBMIT     from there to when the device begins
    execution = END - START
    occupied  = END - max(END of the command before it on the same in-order queue, QUEUED)

`occupied` is what the launch adds to its queue, dispatch included. The command before it is the last one that is no
marker. It is not known on an out-of-order queue, nor where the command before it is not known or has an anomaly.

*Source*: OpenCL 3.0, section 5.14 (``CL_PROFILING_COMMAND_*``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import Times
from perfsuite.records.opencl_commands import CommandType
from perfsuite.trace.opencl.device_clock import STAMPS, AlignedTrace

_Mask = npt.NDArray[np.bool_]
_Index = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """One kind of time over a kernel's launches, ns."""

    total_ns: int
    median_ns: int
    p95_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelStatistics:
    """All sound launches of one kernel, whatever their NDRange."""

    name: str
    n: int
    #: Launches with an anomaly, which are in no figure here.
    n_left_out: int
    execution: Spread
    #: Its execution over that of all kernels.
    share_ratio: float
    queueing: Spread
    dispatch: Spread
    #: None where it is known of none of the launches.
    occupied: Spread | None
    #: Launches of which it is known.
    n_occupied: int


def kernel_statistics(aligned: AlignedTrace) -> tuple[KernelStatistics, ...]:
    """Return the statistics of each kernel of which a launch is sound, the one with the longest total first."""
    commands = aligned.trace.commands
    is_kernel = commands["type"] == CommandType.KERNEL
    sound = np.flatnonzero(is_kernel & aligned.is_sound)
    left_out = np.bincount(commands["name"][is_kernel & ~aligned.is_sound], minlength=len(aligned.trace.names))
    occupied_ns, is_known = occupied_times(aligned)
    total_ns = int((commands["end_ns"][sound] - commands["start_ns"][sound]).sum())
    by_name = sound[np.argsort(commands["name"][sound], kind="stable")]
    launches = np.split(by_name, np.flatnonzero(np.diff(commands["name"][by_name])) + 1) if by_name.size else []
    found = [_statistics(aligned, index, total_ns, occupied_ns[index][is_known[index]], left_out) for index in launches]
    return tuple(sorted(found, key=lambda each: (-each.execution.total_ns, each.name)))


def occupied_times(aligned: AlignedTrace) -> tuple[Times, _Mask]:
    """Return `occupied` of every command, ns, and of which commands it is known."""
    commands = aligned.trace.commands
    occupied_ns = np.zeros(commands.size, dtype=np.int64)
    is_known = np.zeros(commands.size, dtype=bool)
    # Where a command was lost before another, the number of this one is ahead of its position.
    n_missing = commands["sequence"].astype(np.int64) - np.arange(commands.size)
    for queue in aligned.trace.queues:
        here = np.flatnonzero(commands["queue"] == queue.queue)
        if queue.is_out_of_order or not here.size:
            continue
        before = _before(commands["type"][here] == CommandType.MARKER)
        has_one = before >= 0
        begin_ns = commands["queued_ns"][here].copy()
        begin_ns[has_one] = np.maximum(begin_ns[has_one], commands["end_ns"][here[before[has_one]]])
        occupied_ns[here] = commands["end_ns"][here] - begin_ns
        missing_before = np.where(has_one, n_missing[here[before]], 0)
        is_known[here] = (n_missing[here] == missing_before) & (~has_one | aligned.is_sound[here[before]])
        is_known[here] &= aligned.is_sound[here]
    return occupied_ns, is_known


def _before(is_marker: _Mask) -> _Index:
    """Return the position of the last command before each that is no marker, -1 where there is none.

    Markers and barriers occupy no device, and some drivers do not report all of their times.
    """
    last = np.maximum.accumulate(np.where(is_marker, -1, np.arange(is_marker.size)))
    return np.append(-1, last[:-1])


def _statistics(
    aligned: AlignedTrace, index: _Index, total_ns: int, occupied_ns: Times, left_out: _Index
) -> KernelStatistics:
    queued_ns, submit_ns, start_ns, end_ns = (aligned.trace.commands[name][index] for name in STAMPS)
    name = int(aligned.trace.commands["name"][index[0]])
    execution = _spread(end_ns - start_ns)
    return KernelStatistics(
        name=aligned.trace.names[name],
        n=int(index.size),
        n_left_out=int(left_out[name]),
        execution=execution,
        share_ratio=execution.total_ns / total_ns if total_ns else 0.0,
        queueing=_spread(submit_ns - queued_ns),
        dispatch=_spread(start_ns - submit_ns),
        occupied=_spread(occupied_ns) if occupied_ns.size else None,
        n_occupied=int(occupied_ns.size),
    )


def _spread(times_ns: Times) -> Spread:
    median_ns, p95_ns = np.percentile(times_ns, (50, 95))
    return Spread(total_ns=int(times_ns.sum()), median_ns=round(float(median_ns)), p95_ns=round(float(p95_ns)))
