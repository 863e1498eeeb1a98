"""Puts the times of a device's clock on the host's, and finds the commands that cannot have begun there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import Times
from perfsuite.records.opencl_commands import Commands, OpenClTrace
from perfsuite.trace.opencl.clock_fit import call_readings, fitted, timer_readings
from perfsuite.trace.opencl.clock_tick import measured_tick_ns
from perfsuite.trace.opencl.stamps import STAMPS, Anomalies, Anomaly, Mask, has_queued, is_kept, judge_stamps

#: Durations of every command, ns, and of which commands they are known.
Durations = tuple[Times, Mask]


class ClockBasis(Enum):
    """What a device's clock was read by."""

    #: ``clGetDeviceAndHostTimer``.
    TIMER = "timer"
    #: The QUEUED times of commands, each within its enqueue call.
    ENQUEUE_CALLS = "enqueue calls"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClock:
    """How one device's clock stands to the host's."""

    #: Position among the trace's devices.
    device: int
    basis: ClockBasis
    n_readings: int
    #: Rate at which host time gains on the device's, in parts per million, and how far it may be from that.
    drift_ppm: float
    drift_error_ppm: float
    #: The most by which a time may be wrong on the host's clock. `None` where no command has times, and where most
    #: commands are queued outside of their calls, so that nobody knows; durations hold all the same.
    error_ns: int | None
    #: The step in which START and END come; `None` where there are too few to tell.
    tick_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AlignedTrace:
    """A trace with its commands' times on the host's clock; the arrays are parallel to ``trace.commands``."""

    trace: OpenClTrace
    #: Host times, ns. Where a time is odd they mean nothing.
    queued_ns: Times
    submit_ns: Times
    start_ns: Times
    end_ns: Times
    anomalies: Anomalies
    #: Position of the command's device among the trace's devices.
    device: npt.NDArray[np.int64]
    #: One for each device of which any command or timer reported the time.
    clocks: tuple[DeviceClock, ...]

    @property
    def is_kept(self) -> Mask:
        """Which commands have a START and an END that can be right."""
        return is_kept(self.anomalies)

    @property
    def queueing(self) -> Durations:
        """SUBMIT - QUEUED by the device's own clock."""
        return self._between("queued_ns", "submit_ns"), self.anomalies == Anomaly.NONE

    @property
    def dispatch(self) -> Durations:
        """START - SUBMIT by the device's own clock."""
        return self._between("submit_ns", "start_ns"), self.anomalies == Anomaly.NONE

    @property
    def execution(self) -> Durations:
        """END - START by the device's own clock."""
        return self._between("start_ns", "end_ns"), self.is_kept

    def tick_ns(self, device: int) -> int | None:
        """Return the tick of a device's clock."""
        return next((each.tick_ns for each in self.clocks if each.device == device), None)

    def _between(self, first: str, last: str) -> Times:
        length_ns: Times = self.trace.commands[last] - self.trace.commands[first]
        return length_ns


def align(trace: OpenClTrace) -> AlignedTrace:
    """Judge the times of a trace's commands, and put them on the host's clock."""
    by_queue = np.zeros(max((each.queue for each in trace.queues), default=0) + 1, dtype=np.int64)
    for each in trace.queues:
        by_queue[each.queue] = each.device
    device = by_queue[trace.commands["queue"]]
    anomalies = judge_stamps(trace.commands, trace.ended_ns)
    host_ns = np.zeros((len(STAMPS), trace.commands.size), dtype=np.int64)
    clocks = []
    for position in range(len(trace.devices)):
        here = np.flatnonzero(device == position)
        placed = _placed(trace, position, trace.commands[here], anomalies[here])
        if placed is not None:
            clock, host_ns[:, here] = placed
            clocks.append(clock)
            if clock.error_ns is not None:
                is_early = host_ns[STAMPS.index("start_ns")] < trace.commands["host_start_ns"] - clock.error_ns
                anomalies[is_early & (device == position) & is_kept(anomalies)] = Anomaly.START_BEFORE_CALL
    stamps = dict(zip(STAMPS, host_ns, strict=True))
    return AlignedTrace(trace=trace, anomalies=anomalies, device=device, clocks=tuple(clocks), **stamps)


def _placed(
    trace: OpenClTrace, device: int, commands: Commands, anomalies: Anomalies
) -> tuple[DeviceClock, Times] | None:
    """Return a device's clock and its commands' host times; `None` where the clock was never read.

    The timer counts, unless it is another clock than the commands': one that puts most of them outside of their calls.
    """
    fits = list(_fits(trace, device, commands, has_queued(commands, anomalies)))
    found = next((each for each in fits if each[0].error_ns is not None), fits[0] if fits else None)
    if found is None:
        return None
    times_ns = np.concatenate([commands[name][is_kept(anomalies)] for name in ("start_ns", "end_ns")])
    tick_ns = measured_tick_ns(times_ns, trace.devices[device].timer_resolution_ns)
    return replace(found[0], tick_ns=tick_ns), found[1]


def _fits(trace: OpenClTrace, device: int, commands: Commands, is_queued: Mask) -> Iterator[tuple[DeviceClock, Times]]:
    queued = commands[is_queued]
    readings = {
        ClockBasis.TIMER: timer_readings(trace, device),
        ClockBasis.ENQUEUE_CALLS: call_readings(trace, device, queued),
    }
    for basis, rows in readings.items():
        if len(rows):
            used_ns = np.stack([queued["queued_ns"], queued["end_ns"]])
            line = fitted(rows, used_ns)
            errors_ns = line.error_ns(used_ns)
            queued_ns = line.host_times(queued["queued_ns"])
            is_outside = queued_ns < queued["host_start_ns"] - errors_ns[0]
            is_outside |= queued_ns > queued["host_end_ns"] + errors_ns[0]
            clock = DeviceClock(
                device=device,
                basis=basis,
                n_readings=len(rows),
                drift_ppm=1e6 * line.rate,
                drift_error_ppm=1e6 * line.rate_error,
                error_ns=int(errors_ns.max()) if queued.size and 2 * is_outside.sum() <= queued.size else None,
            )
            yield clock, np.stack([line.host_times(commands[name]) for name in STAMPS])


def within(aligned: AlignedTrace, windows: Sequence[tuple[int, int]]) -> AlignedTrace:
    """Return a trace of the commands whose enqueue call began in one of the windows.

    A window is a begin and an end, which is outside, in ns of the host's clock; they are in the order of time, and do
    not overlap.
    """
    edges_ns = np.array(windows, dtype=np.int64).reshape(-1)
    chosen = np.searchsorted(edges_ns, aligned.trace.commands["host_start_ns"], side="right") % 2 == 1
    parts = {name: getattr(aligned, name)[chosen] for name in (*STAMPS, "anomalies", "device")}
    return replace(aligned, trace=replace(aligned.trace, commands=aligned.trace.commands[chosen]), **parts)
