"""Puts the times of a device's clock on the host's, and finds the commands that cannot have begun there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import Times
from perfsuite.records.opencl_commands import ClockSource, Commands, OpenClTrace
from perfsuite.trace.opencl.stamps import (
    STAMPS,
    Anomalies,
    Anomaly,
    Mask,
    has_queued,
    is_kept,
    judge_stamps,
    measured_tick_ns,
)

#: The most by which two clocks drift apart: the kernel slews its clock by at most 500 ppm (adjtimex(2)), on top of what
#: two crystals differ by.
MOST_RATE = 700e-6
#: How far the rate may be from its mean within a run.
_LEAST_RATE_CHANGE = 10e-6

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClockLine:
    """The offset of a device's clock over the device's time."""

    #: The device's times of the readings, from the first one's on.
    origin_ns: int
    at_ns: _Floats
    base_ns: int
    offset_ns: float
    rate: float
    rate_error: float
    #: The most by which the line may be off at a reading.
    bound_ns: float

    def host_times(self, device_ns: Times) -> Times:
        shift_ns = np.rint(self.offset_ns + self.rate * (device_ns - self.origin_ns)).astype(np.int64)
        host_ns: Times = device_ns + self.base_ns + shift_ns
        return host_ns

    def error_ns(self, device_ns: Times) -> _Floats:
        """Return the most by which each host time may be wrong, ns."""
        after_ns = (device_ns - self.origin_ns).astype(np.float64)
        edges_ns = np.concatenate([[-np.inf], self.at_ns, [np.inf]])
        right = np.searchsorted(edges_ns, after_ns).clip(1)
        apart_ns = np.minimum(after_ns - edges_ns[right - 1], edges_ns[right] - after_ns)
        errors_ns: _Floats = np.ceil(self.bound_ns + self.rate_error * apart_ns)
        return errors_ns


def timer_readings(trace: OpenClTrace, device: int) -> Times:
    """Return the readings of a device's timer: rows of the device's time and the host's before and after."""
    return _points(trace, device, ClockSource.TIMER)


def call_readings(trace: OpenClTrace, device: int, commands: Commands) -> Times:
    """Return QUEUED of each command within its enqueue call, and the layer's own empty commands, as such rows."""
    calls = np.column_stack([commands["queued_ns"], commands["host_start_ns"], commands["host_end_ns"]])
    return np.vstack([_points(trace, device, ClockSource.MARKER), calls])


def _points(trace: OpenClTrace, device: int, source: ClockSource) -> Times:
    points = [each for each in trace.clock_points if each.device == device and each.source is source]
    rows = [(each.device_ns, each.host_before_ns, each.host_after_ns) for each in points]
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def fitted(readings: Times, used_ns: Times) -> ClockLine:
    """Return the line through one reading or more that has the least error at the device's times `used_ns`.

    Each reading says that the device's clock showed `device_ns` at some time between two host times, which bound the
    offset o = host - device. The line o(t) = offset + rate t is the weighted least-squares fit to the middles of these
    brackets, each with one over its width, of all readings, or of the narrower half or tenth of them. With b the
    farthest end of a bracket from the line, and S the time between the first reading and the last, the error at a time
    that is d from the nearest reading is

        b + d (10 ppm + 2 b / S)

    for 10 ppm is what the rate of two crystals may change by within a run. One reading alone leaves `MOST_RATE` of
    doubt.

    *Source*: the bracketing of readings is Cristian, 'Probabilistic clock synchronization', Distributed Computing 3
    (1989).
    """
    widths_ns = readings[:, 2] - readings[:, 1]
    lines = [_line(readings[widths_ns <= np.quantile(widths_ns, share)]) for share in (1, 0.5, 0.1)]
    return min(lines, key=lambda line: line.error_ns(used_ns).max(initial=0))


def _line(readings: Times) -> ClockLine:
    device_ns, before_ns, after_ns = readings[np.argsort(readings[:, 0], kind="stable")].T
    origin_ns, base_ns = int(device_ns[0]), int(before_ns[0] - device_ns[0])
    at_ns = (device_ns - origin_ns).astype(np.float64)
    lower_ns, upper_ns = ((each - device_ns - base_ns).astype(np.float64) for each in (before_ns, after_ns))
    middle_ns, weights = (lower_ns + upper_ns) / 2, 1 / (1 + upper_ns - lower_ns)
    centred_ns = at_ns - np.average(at_ns, weights=weights)
    spread = float((weights * centred_ns**2).sum())
    rate = float((weights * centred_ns * middle_ns).sum()) / spread if spread else 0.0
    rate = min(max(rate, -MOST_RATE), MOST_RATE)
    offset_ns = float(np.average(middle_ns - rate * at_ns, weights=weights))
    line_ns = offset_ns + rate * at_ns
    bound_ns = float(np.maximum(upper_ns - line_ns, line_ns - lower_ns).max())
    rate_error = min(MOST_RATE, _LEAST_RATE_CHANGE + 2 * bound_ns / at_ns[-1]) if at_ns[-1] else MOST_RATE
    return ClockLine(
        origin_ns=origin_ns,
        at_ns=at_ns,
        base_ns=base_ns,
        offset_ns=offset_ns,
        rate=rate,
        rate_error=float(rate_error),
        bound_ns=bound_ns,
    )


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
