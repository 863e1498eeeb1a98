"""Puts the times of a device's clock on the host's, and finds the times that do not fit there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import Times
from perfsuite.records.opencl_commands import Commands, OpenClTrace
from perfsuite.trace.opencl.clock_fit import ClockSegment, call_readings, fit_segments, joined, timer_readings
from perfsuite.trace.opencl.clock_tick import measured_tick_ns
from perfsuite.trace.opencl.stamps import (
    EXECUTION,
    QUEUEING,
    STAMPS,
    Anomaly,
    Flags,
    JudgedStamps,
    Stamp,
    duration_ns,
    judge_stamps,
)

#: A step is as bad as so large a part of the commands outside of their calls, and no more often believed of readings.
_STEP_SHARE = 8


class ClockBasis(Enum):
    """What a device's clock was read by."""

    #: ``clGetDeviceAndHostTimer``.
    TIMER = "timer"
    #: The QUEUED times of commands, each within its enqueue call.
    ENQUEUE_CALLS = "enqueue calls"
    #: Both, which agree.
    TIMER_AND_CALLS = "timer and enqueue calls"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClock:
    """How one device's clock stands to the host's."""

    #: Position among the trace's devices.
    device: int
    basis: ClockBasis
    n_readings: int
    #: Times that the clock stepped or wrapped.
    n_steps: int
    #: Rate at which host time gains on the device's, in parts per million; of the longest steady stretch.
    drift_ppm: float
    #: How far the rate may have been from that at any time.
    drift_error_ppm: float
    #: The most by which a time that is not missing may be wrong on the host's clock. `None` where none is left, and
    #: where the readings contradict each other or most commands, so that nobody knows; durations hold all the same.
    error_ns: int | None
    #: The step in which START and END come; `None` where there are too few to tell.
    tick_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeviceFit:
    """One device's commands on the host's clock."""

    clock: DeviceClock
    #: Of shape (4, commands).
    host_ns: Times
    #: Commands whose QUEUED is outside of the enqueue call, and those whose START is before it.
    is_outside: npt.NDArray[np.bool_]
    is_early: npt.NDArray[np.bool_]
    #: How ill the readings suit the commands.
    misfit: float


def best_fit(trace: OpenClTrace, device: int, commands: Commands, missing: Flags) -> DeviceFit | None:
    """Fit one device's clock by the readings that suit its commands best; `None` where there are none.

    A device's clock is read by its timer, by the enqueue calls, or by both: by what leaves the fewest commands outside
    of their calls, a step counting as much as an eighth of them, and then by what has the smallest error. So a timer
    that is another clock than that of the commands' times is not used, nor are QUEUED times that a driver takes later.
    Where most commands are outside all the same, the error is not known.
    """
    timer = timer_readings(trace, device)
    calls = call_readings(trace, device, commands[(missing & Stamp.QUEUED) == 0])
    readings = {ClockBasis.TIMER: timer, ClockBasis.ENQUEUE_CALLS: calls}
    if timer.device_ns.size and calls.device_ns.size:
        readings[ClockBasis.TIMER_AND_CALLS] = joined(timer, calls)
    used = {basis: fit_segments(found) for basis, found in readings.items() if found.device_ns.size}
    fits = [_fit(device, basis, segments, commands, missing) for basis, segments in used.items()]
    return min(fits, key=lambda fit: (fit.misfit, fit.clock.error_ns is None, fit.clock.error_ns or 0), default=None)


def _fit(
    device: int, basis: ClockBasis, segments: tuple[ClockSegment, ...], commands: Commands, missing: Flags
) -> DeviceFit:
    queued_ns, error_ns, chosen = _by_nearest_segment(segments, commands, missing)
    later = [_by_segment(segments, chosen, commands[name]) for name in STAMPS[1:]]
    host_ns = np.vstack([queued_ns, *(times for times, _ in later)])
    errors_ns = np.vstack([error_ns, *(errors for _, errors in later)])
    is_there = np.stack([(missing & stamp) == 0 for stamp in Stamp])
    is_outside = (_outside_ns(queued_ns, commands) > error_ns) & is_there[0]
    n_outside, n_timed = int(is_outside.sum()), int(is_there[0].sum())
    is_there[0] &= ~is_outside
    n_steps, n_readings = len(segments) - 1, sum(each.n_readings for each in segments)
    is_early = is_there[2] & (host_ns[2] < commands["host_start_ns"] - errors_ns[2])
    is_believable = (
        2 * n_outside <= n_timed
        and 2 * int(is_early.sum()) <= int(is_there[2].sum())
        and _STEP_SHARE * n_steps <= n_readings
        and bool(is_there.any())
    )
    is_there[2] &= ~is_early
    longest = max(segments, key=lambda each: each.host_last_ns - each.host_first_ns)
    clock = DeviceClock(
        device=device,
        basis=basis,
        n_readings=n_readings,
        n_steps=n_steps,
        drift_ppm=1e6 * longest.rate,
        drift_error_ppm=1e6 * longest.rate_change,
        error_ns=int(np.max(errors_ns[is_there], initial=0.0)) if is_believable else None,
    )
    misfit = n_outside + n_steps * commands.size / _STEP_SHARE
    return DeviceFit(
        clock=clock, host_ns=host_ns, is_outside=is_outside, is_early=is_early & is_believable, misfit=misfit
    )


def _by_nearest_segment(
    segments: tuple[ClockSegment, ...], commands: Commands, missing: Flags
) -> tuple[Times, npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return when commands were queued, the error of it, and the steady stretch of each.

    Between two stretches a command belongs to the one that puts its QUEUED the nearer to its enqueue call.
    """
    firsts = np.array([each.host_first_ns for each in segments])
    chosen = np.maximum(np.searchsorted(firsts, commands["host_start_ns"], side="right") - 1, 0)
    queued_ns, error_ns = _by_segment(segments, chosen, commands["queued_ns"])
    for position, (before, after) in enumerate(pairwise(segments)):
        is_between = (chosen == position) & (commands["host_start_ns"] > before.host_last_ns)
        between = np.flatnonzero(is_between & ((missing & Stamp.QUEUED) == 0))
        later_ns, later_error_ns = after.host_times(commands["queued_ns"][between])
        is_nearer = _outside_ns(later_ns, commands[between]) < _outside_ns(queued_ns[between], commands[between])
        moved = between[is_nearer]
        chosen[moved] = position + 1
        queued_ns[moved], error_ns[moved] = later_ns[is_nearer], later_error_ns[is_nearer]
    return queued_ns, error_ns, chosen


def _by_segment(
    segments: tuple[ClockSegment, ...], chosen: npt.NDArray[np.int64], device_ns: Times
) -> tuple[Times, npt.NDArray[np.float64]]:
    host_ns, error_ns = np.zeros(device_ns.size, dtype=np.int64), np.zeros(device_ns.size)
    for position, segment in enumerate(segments):
        here = chosen == position
        host_ns[here], error_ns[here] = segment.host_times(device_ns[here])
    return host_ns, error_ns


def _outside_ns(queued_ns: Times, commands: Commands) -> Times:
    """Return by how much QUEUED lies before or after the enqueue call; 0 within."""
    before_ns, after_ns = commands["host_start_ns"] - queued_ns, queued_ns - commands["host_end_ns"]
    outside_ns: Times = np.maximum(np.maximum(before_ns, after_ns), 0)
    return outside_ns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AlignedTrace:
    """A trace with its commands' times on the host's clock; the arrays are parallel to ``trace.commands``."""

    trace: OpenClTrace
    #: Host times, ns. Where a time is missing they mean nothing.
    queued_ns: Times
    submit_ns: Times
    start_ns: Times
    end_ns: Times
    #: `Anomaly` flags; 0 where nothing is odd.
    anomalies: Flags
    #: `Stamp` flags of the times that are not known or cannot be right.
    missing: Flags
    #: Position of the command's device among the trace's devices.
    device: npt.NDArray[np.int64]
    #: One for each device of which any command or timer reported the time.
    clocks: tuple[DeviceClock, ...]

    def duration_ns(self, needed: Stamp) -> tuple[Times, npt.NDArray[np.bool_]]:
        """Return what lies between two times by the device's own clock, and of which commands it is known."""
        return duration_ns(self.trace.commands, self.missing, needed)

    @property
    def is_placed(self) -> npt.NDArray[np.bool_]:
        """Of which commands START and END are known on the host's clock."""
        _, is_known = self.duration_ns(EXECUTION)
        is_placed: npt.NDArray[np.bool_] = is_known & ((self.anomalies & Anomaly.WRAPPED) == 0)
        return is_placed

    def tick_ns(self, device: int) -> int | None:
        """Return the tick of a device's clock."""
        return next((each.tick_ns for each in self.clocks if each.device == device), None)


def align(trace: OpenClTrace) -> AlignedTrace:
    """Judge the times of a trace's commands, and put them on the host's clock."""
    by_queue = np.zeros(max((each.queue for each in trace.queues), default=0) + 1, dtype=np.int64)
    for each in trace.queues:
        by_queue[each.queue] = each.device
    device = by_queue[trace.commands["queue"]]
    anomalies, missing = np.zeros((2, trace.commands.size), dtype=np.uint16)
    host_ns = np.zeros((len(STAMPS), trace.commands.size), dtype=np.int64)
    clocks = []
    for position in range(len(trace.devices)):
        here = np.flatnonzero(device == position)
        commands = trace.commands[here]
        tick_ns = _tick_ns(trace, position, commands)
        judged = judge_stamps(commands, trace.queues, tick_ns=tick_ns or 1)
        anomalies[here], missing[here] = judged.anomalies, judged.missing
        fit = best_fit(trace, position, commands, judged.missing)
        if fit is not None:
            host_ns[:, here] = fit.host_ns
            anomalies[here[fit.is_outside]] |= np.uint16(Anomaly.OUTSIDE_CALL)
            anomalies[here[fit.is_early]] |= np.uint16(Anomaly.START_BEFORE_CALL)
            missing[here] |= _unfitting(judged, fit)
            clocks.append(replace(fit.clock, tick_ns=tick_ns))
    stamps = dict(zip(STAMPS, host_ns, strict=True))
    return AlignedTrace(
        trace=trace, anomalies=anomalies, missing=missing, device=device, clocks=tuple(clocks), **stamps
    )


def _tick_ns(trace: OpenClTrace, device: int, commands: Commands) -> int | None:
    """Return the tick of START and END; QUEUED and SUBMIT may be of another clock."""
    times_ns = np.concatenate([commands["start_ns"], commands["end_ns"]])
    return measured_tick_ns(times_ns, trace.devices[device].timer_resolution_ns)


def _unfitting(judged: JudgedStamps, fit: DeviceFit) -> Flags:
    """Return the times that are missing for what the host's clock says of them."""
    has_clock = fit.clock.error_ns is not None
    is_queued = fit.is_outside | ((judged.missing & Stamp.QUEUED) != 0)
    is_turned = (judged.anomalies & Anomaly.SUBMIT_BEFORE_QUEUED) != 0
    missing = np.where(fit.is_outside, np.uint16(Stamp.QUEUED), np.uint16(0))
    missing |= np.where(fit.is_early, np.uint16(Stamp.START), np.uint16(0))
    missing |= np.where(is_turned & ~is_queued, np.uint16(Stamp.SUBMIT), np.uint16(0))
    if not has_clock:
        missing |= np.where(is_turned, np.uint16(QUEUEING), np.uint16(0))
    return missing


def within(aligned: AlignedTrace, windows: Sequence[tuple[int, int]]) -> AlignedTrace:
    """Return a trace of the commands whose enqueue call began in one of the windows.

    A window is a begin and an end, which is outside, in ns of the host's clock; they are in the order of time, and do
    not overlap.
    """
    edges_ns = np.array(windows, dtype=np.int64).reshape(-1)
    chosen = np.searchsorted(edges_ns, aligned.trace.commands["host_start_ns"], side="right") % 2 == 1
    columns = ("queued_ns", "submit_ns", "start_ns", "end_ns", "anomalies", "missing", "device")
    parts = {name: getattr(aligned, name)[chosen] for name in columns}
    return replace(aligned, trace=replace(aligned.trace, commands=aligned.trace.commands[chosen]), **parts)
