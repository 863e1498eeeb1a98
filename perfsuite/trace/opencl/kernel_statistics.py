"""Time by kernel: execution, and apart from it what a launch waited for.

Of one command with the times QUEUED, SUBMIT, START and END of its device's clock, ns:

    queueing  = SUBMIT - QUEUED    from the program's call to when the driver hands the command to the device
    dispatch  = START - SUBMIT     from there to when the device begins
    execution = END - START
    occupied  = END - max(END of the command before it on the same in-order queue, QUEUED)

`occupied` is what the launch adds to its queue, dispatch included. The command before it is the last one that is no
marker. It is not known on an out-of-order queue, nor where the command before it was lost or dropped.

A launch whose START and END cannot be right counts in none of them; one whose QUEUED or SUBMIT cannot, in execution.

*Source*: OpenCL 3.0, section 5.14 (``CL_PROFILING_COMMAND_*``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import Times
from perfsuite.records.opencl_commands import CommandType
from perfsuite.trace.opencl.device_clock import AlignedTrace, Durations
from perfsuite.trace.opencl.stamps import Mask, has_queued, tick_error_ns

_Index = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """One kind of time over a kernel's launches, ns."""

    total_ns: int
    median_ns: int
    p95_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelStatistics:
    """All launches of one kernel, whatever their NDRange; a time is `None` where it is known of none of them."""

    name: str
    #: Launches whose execution is known.
    n: int
    #: Launches whose execution is not.
    n_left_out: int
    execution: Spread | None
    #: Its execution over that of all kernels.
    share_ratio: float
    #: By how much the mean execution may be off for the tick of the device's clock, over it; `None` where either is
    #: not known.
    tick_error_ratio: float | None
    queueing: Spread | None
    dispatch: Spread | None
    occupied: Spread | None
    #: Launches of which each is known.
    n_queueing: int
    n_dispatch: int
    n_occupied: int


def kernel_statistics(aligned: AlignedTrace) -> tuple[KernelStatistics, ...]:
    """Return the statistics of each kernel, the one with the longest total first."""
    commands = aligned.trace.commands
    kernels = np.flatnonzero(commands["type"] == CommandType.KERNEL)
    times = {
        "execution": aligned.execution,
        "queueing": aligned.queueing,
        "dispatch": aligned.dispatch,
        "occupied": occupied_times(aligned),
    }
    execution_ns, is_known = aligned.execution
    total_ns = int(execution_ns[kernels][is_known[kernels]].sum())
    by_name = kernels[np.argsort(commands["name"][kernels], kind="stable")]
    launches = np.split(by_name, np.flatnonzero(np.diff(commands["name"][by_name])) + 1) if by_name.size else []
    found = [_statistics(aligned, index, times, total_ns) for index in launches]
    return tuple(sorted(found, key=lambda each: (-(each.execution.total_ns if each.execution else 0), each.name)))


def occupied_times(aligned: AlignedTrace) -> Durations:
    """Return `occupied` of every command, ns, and of which commands it is known."""
    commands = aligned.trace.commands
    occupied_ns = np.zeros(commands.size, dtype=np.int64)
    is_known = np.zeros(commands.size, dtype=bool)
    # Where a command was lost before another, the number of this one is ahead of its position.
    n_missing = commands["sequence"].astype(np.int64) - np.arange(commands.size)
    kept, queued = aligned.is_kept, has_queued(commands, aligned.anomalies)
    for queue in aligned.trace.queues:
        here = np.flatnonzero(commands["queue"] == queue.queue)
        if queue.is_out_of_order or not here.size:
            continue
        before = _before(commands["type"][here] == CommandType.MARKER)
        has_one = before >= 0
        end_before_ns = np.where(has_one, commands["end_ns"][here[before]], np.iinfo(np.int64).min)
        occupied_ns[here] = commands["end_ns"][here] - np.maximum(commands["queued_ns"][here], end_before_ns)
        missing_before = np.where(has_one, n_missing[here[before]], 0)
        is_known[here] = (n_missing[here] == missing_before) & (~has_one | kept[here[before]])
        is_known[here] &= queued[here] & (occupied_ns[here] >= 0)
    return occupied_ns, is_known & (commands["type"] != CommandType.MARKER)


def _before(is_marker: Mask) -> _Index:
    """Return the position of the last command before each that is no marker, -1 where there is none.

    Markers and barriers occupy no device, and some drivers do not report all of their times.
    """
    last = np.maximum.accumulate(np.where(is_marker, -1, np.arange(is_marker.size)))
    return np.append(-1, last[:-1])


def _statistics(
    aligned: AlignedTrace, index: _Index, times: Mapping[str, Durations], total_ns: int
) -> KernelStatistics:
    durations_ns = {name: found_ns[index][is_known[index]] for name, (found_ns, is_known) in times.items()}
    execution = _spread(durations_ns["execution"])
    n_known = durations_ns["execution"].size
    tick_ns = aligned.tick_ns(int(aligned.device[index[0]]))
    has_error = execution is not None and execution.total_ns and tick_ns is not None
    return KernelStatistics(
        name=aligned.trace.names[int(aligned.trace.commands["name"][index[0]])],
        n=n_known,
        n_left_out=int(index.size) - n_known,
        execution=execution,
        share_ratio=execution.total_ns / total_ns if execution and total_ns else 0.0,
        tick_error_ratio=tick_error_ns(tick_ns, n_known) * n_known / execution.total_ns
        if execution and has_error
        else None,
        queueing=_spread(durations_ns["queueing"]),
        dispatch=_spread(durations_ns["dispatch"]),
        occupied=_spread(durations_ns["occupied"]),
        n_queueing=durations_ns["queueing"].size,
        n_dispatch=durations_ns["dispatch"].size,
        n_occupied=durations_ns["occupied"].size,
    )


def _spread(times_ns: Times) -> Spread | None:
    if not times_ns.size:
        return None
    median_ns, p95_ns = np.percentile(times_ns, (50, 95))
    return Spread(total_ns=int(times_ns.sum()), median_ns=round(float(median_ns)), p95_ns=round(float(p95_ns)))
