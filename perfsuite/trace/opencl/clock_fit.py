"""A device's clock against the host's: an offset and a drift, with what they may be off by.

Each reading says that the device's clock showed `device_ns` at some time between two host times, which bound the offset
o = host - device. The line o(t) = offset + rate t is the weighted least-squares fit to the middles of these brackets,
each with one over its width; wide ones, of calls that were held up, are left out where that makes the error less. With
b the farthest end of a bracket from the line, and S the time between the first reading and the last, the error at a
time that is d from the nearest reading is

    b + d (10 ppm + 2 b / S)

for 10 ppm is what the rate of two crystals may change by within a run. One reading alone leaves `MOST_RATE` of doubt.

*Source*: the bracketing of readings is Cristian, 'Probabilistic clock synchronization', Distributed Computing 3 (1989).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import Times
from perfsuite.records.opencl_commands import ClockSource, Commands, OpenClTrace

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
        """Return host times, ns."""
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

    It is of all readings, or of the narrower half or tenth of them.
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
