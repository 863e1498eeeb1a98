"""Puts the times of a device's clock on the host's, and finds the commands whose times cannot be right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, IntFlag
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import Times
from perfsuite.records.opencl_commands import CommandFlag, Commands, OpenClTrace
from perfsuite.trace.opencl.clock_fit import ClockSegment, call_readings, fit_segments, joined, timer_readings

__all__ = [
    "STAMPS",
    "AlignedTrace",
    "Anomaly",
    "ClockBasis",
    "DeviceClock",
    "DeviceFit",
    "Flags",
    "align",
    "best_fit",
    "own_anomalies",
    "within",
]

#: The four times of a command, in the order in which they pass.
STAMPS = ("queued_ns", "submit_ns", "start_ns", "end_ns")

#: A later time that is smaller by more than this has wrapped: the smallest counters have 32 bits of 1 ns or more.
_WRAP_NS = 1 << 31

#: `Anomaly` flags of commands.
Flags = npt.NDArray[np.uint8]


class Anomaly(IntFlag):
    """Why a command's times are not to be trusted."""

    #: The driver gave no time, or gave 0.
    ZERO_TIME = 1
    SUBMIT_BEFORE_QUEUED = 2
    START_BEFORE_SUBMIT = 4
    END_BEFORE_START = 8
    #: QUEUED is outside of the enqueue call by more than the clock's error.
    OUTSIDE_CALL = 16
    #: The device's counter wrapped while the command was on its way.
    WRAPPED = 32
    #: The command ended with an error.
    FAILED = 64


def own_anomalies(commands: Commands) -> Flags:
    """Return the `Anomaly` flags that a command's own times show, whatever the host's clock says."""
    queued_ns, submit_ns, start_ns, end_ns = times = [commands[name] for name in STAMPS]
    is_zero = (commands["flags"] & CommandFlag.NO_PROFILE) != 0
    for each in times:
        is_zero |= each == 0
    is_wrapped = np.zeros(commands.size, dtype=bool)
    for earlier, later in pairwise(times):
        is_wrapped |= earlier - later > _WRAP_NS
    found = {
        Anomaly.ZERO_TIME: is_zero,
        Anomaly.SUBMIT_BEFORE_QUEUED: (submit_ns < queued_ns) & ~is_wrapped & ~is_zero,
        Anomaly.START_BEFORE_SUBMIT: (start_ns < submit_ns) & ~is_wrapped & ~is_zero,
        Anomaly.END_BEFORE_START: (end_ns < start_ns) & ~is_wrapped & ~is_zero,
        Anomaly.WRAPPED: is_wrapped & ~is_zero,
        Anomaly.FAILED: commands["status"] < 0,
    }
    flags = np.zeros(commands.size, dtype=np.uint8)
    for anomaly, holds in found.items():
        flags |= np.where(holds, np.uint8(anomaly), np.uint8(0))
    return flags


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
    #: The most by which a time of a sound command may be wrong on the host's clock. `None` where no command is sound,
    #: and where the readings contradict each other or most commands, so that nobody knows; durations hold all the same.
    error_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeviceFit:
    """One device's commands on the host's clock."""

    clock: DeviceClock
    #: Of shape (4, commands).
    host_ns: Times
    #: Commands to be flagged.
    is_outside: npt.NDArray[np.bool_]
    #: How ill the readings suit the commands.
    misfit: float


def best_fit(trace: OpenClTrace, device: int, commands: Commands, anomalies: Flags) -> DeviceFit | None:
    """Fit one device's clock by the readings that suit its commands best; `None` where there are none.

    A device's clock is read by its timer, by the enqueue calls, or by both: by what leaves the fewest commands outside
    of their calls, a step counting as much as an eighth of them, and then by what has the smallest error. So a timer
    that is another clock than that of the commands' times is not used, nor are QUEUED times that a driver takes later.
    Where most commands are outside all the same, they are not flagged for it: that is the driver's way.
    """
    timer = timer_readings(trace, device)
    calls = call_readings(trace, device, commands[(anomalies & Anomaly.ZERO_TIME) == 0])
    readings = {ClockBasis.TIMER: timer, ClockBasis.ENQUEUE_CALLS: calls}
    if timer.device_ns.size and calls.device_ns.size:
        readings[ClockBasis.TIMER_AND_CALLS] = joined(timer, calls)
    used = {basis: fit_segments(found) for basis, found in readings.items() if found.device_ns.size}
    fits = [_fit(device, basis, segments, commands, anomalies) for basis, segments in used.items()]
    return min(fits, key=lambda fit: (fit.misfit, fit.clock.error_ns is None, fit.clock.error_ns or 0), default=None)


def _fit(
    device: int, basis: ClockBasis, segments: tuple[ClockSegment, ...], commands: Commands, anomalies: Flags
) -> DeviceFit:
    queued_ns, error_ns, chosen = _by_nearest_segment(segments, commands)
    later = [_by_segment(segments, chosen, commands[name]) for name in STAMPS[1:]]
    is_timed = (anomalies & Anomaly.ZERO_TIME) == 0
    is_outside = (_outside_ns(queued_ns, commands) > error_ns) & is_timed
    n_outside, n_timed = int(is_outside.sum()), int(is_timed.sum())
    is_flagged = is_outside & (2 * n_outside <= n_timed)
    is_sound = (anomalies == 0) & ~is_flagged
    worst_ns = max(float(np.max(errors[is_sound], initial=0.0)) for errors in (error_ns, *(each for _, each in later)))
    n_steps, n_readings = len(segments) - 1, sum(each.n_readings for each in segments)
    is_believable = 2 * n_outside <= n_timed and _STEP_SHARE * n_steps <= n_readings and is_sound.any()
    longest = max(segments, key=lambda each: each.host_last_ns - each.host_first_ns)
    clock = DeviceClock(
        device=device,
        basis=basis,
        n_readings=n_readings,
        n_steps=n_steps,
        drift_ppm=1e6 * longest.rate,
        drift_error_ppm=1e6 * longest.rate_change,
        error_ns=int(worst_ns) if is_believable else None,
    )
    host_ns = np.vstack([queued_ns, *(times for times, _ in later)])
    misfit = n_outside + n_steps * commands.size / _STEP_SHARE
    return DeviceFit(clock=clock, host_ns=host_ns, is_outside=is_flagged, misfit=misfit)


def _by_nearest_segment(
    segments: tuple[ClockSegment, ...], commands: Commands
) -> tuple[Times, npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return when commands were queued, the error of it, and the steady stretch of each.

    Between two stretches a command belongs to the one that puts its QUEUED the nearer to its enqueue call.
    """
    firsts = np.array([each.host_first_ns for each in segments])
    chosen = np.maximum(np.searchsorted(firsts, commands["host_start_ns"], side="right") - 1, 0)
    queued_ns, error_ns = _by_segment(segments, chosen, commands["queued_ns"])
    for position, (before, after) in enumerate(pairwise(segments)):
        between = np.flatnonzero((chosen == position) & (commands["host_start_ns"] > before.host_last_ns))
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
    #: Host times, ns. Of commands with an anomaly they mean nothing.
    queued_ns: Times
    submit_ns: Times
    start_ns: Times
    end_ns: Times
    #: `Anomaly` flags; 0 where a command is sound.
    anomalies: Flags
    #: Position of the command's device among the trace's devices.
    device: npt.NDArray[np.int64]
    #: One for each device of which any command or timer reported the time.
    clocks: tuple[DeviceClock, ...]

    @property
    def is_sound(self) -> npt.NDArray[np.bool_]:
        """Which commands may be counted in statistics."""
        sound: npt.NDArray[np.bool_] = self.anomalies == 0
        return sound


def align(trace: OpenClTrace) -> AlignedTrace:
    """Put a trace's commands on the host's clock."""
    by_queue = np.zeros(max((each.queue for each in trace.queues), default=0) + 1, dtype=np.int64)
    for each in trace.queues:
        by_queue[each.queue] = each.device
    device = by_queue[trace.commands["queue"]]
    anomalies = own_anomalies(trace.commands)
    host_ns = np.zeros((len(STAMPS), trace.commands.size), dtype=np.int64)
    clocks = []
    for position in range(len(trace.devices)):
        here = np.flatnonzero(device == position)
        fit = best_fit(trace, position, trace.commands[here], anomalies[here])
        if fit is not None:
            host_ns[:, here] = fit.host_ns
            anomalies[here[fit.is_outside]] |= np.uint8(Anomaly.OUTSIDE_CALL)
            clocks.append(fit.clock)
    stamps = dict(zip(STAMPS, host_ns, strict=True))
    return AlignedTrace(trace=trace, anomalies=anomalies, device=device, clocks=tuple(clocks), **stamps)


def within(aligned: AlignedTrace, windows: Sequence[tuple[int, int]]) -> AlignedTrace:
    """Return a trace of the commands whose enqueue call began in one of the windows.

    A window is a begin and an end, which is outside, in ns of the host's clock; they are in the order of time, and do
    not overlap.
    """
    edges_ns = np.array(windows, dtype=np.int64).reshape(-1)
    chosen = np.searchsorted(edges_ns, aligned.trace.commands["host_start_ns"], side="right") % 2 == 1
    columns = ("queued_ns", "submit_ns", "start_ns", "end_ns", "anomalies", "device")
    parts = {name: getattr(aligned, name)[chosen] for name in columns}
    return replace(aligned, trace=replace(aligned.trace, commands=aligned.trace.commands[chosen]), **parts)
