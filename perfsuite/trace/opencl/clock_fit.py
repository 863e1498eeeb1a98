"""A device's clock against the host's, as intervals that the difference of the two must are in.

Each reading says that the device's clock showed `device_ns` at some time between two host times, so that the offset
o = host - device is in an interval. Two quartz clocks drift apart by a nearly constant rate b, and between any two
times the offset changes by b times the time between, to within a small rate r. So each reading bounds the offset at
every other time t as well, by lines that open with the distance:

    lower(t) = max over i of (lower_i + b (t - t_i) - r |t - t_i|),    upper(t) likewise

The estimate joins the middles of these bounds at the readings by straight lines; its error bound is the distance to
the farther of lower(t) and upper(t). No reading is averaged, so late ones cannot pull the estimate.

*Source*: the bracketing of readings is Cristian, 'Probabilistic clock synchronization', Distributed Computing 3 (1989);
intervals instead of averages are Marzullo's, as in NTP (RFC 5905, section 11.2.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import Times
from perfsuite.records.opencl_commands import ClockSource, Commands, OpenClTrace

#: Readings that are made of enqueue calls, at most; of more commands the shortest calls are taken.
MOST_READINGS = 512


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClockReadings:
    """Readings of one device's clock in the order of the host's time; three arrays of one length, ns."""

    device_ns: Times
    host_before_ns: Times
    host_after_ns: Times

    @property
    def lower_ns(self) -> Times:
        """The least that the offset can be at each reading."""
        return self.host_before_ns - self.device_ns

    @property
    def upper_ns(self) -> Times:
        """The most that the offset can be at each reading."""
        return self.host_after_ns - self.device_ns

    def part(self, index: slice | npt.NDArray[np.intp]) -> ClockReadings:
        """Return some of the readings."""
        return ClockReadings(**{name: getattr(self, name)[index] for name in ClockReadings.__slots__})


def timer_readings(trace: OpenClTrace, device: int) -> ClockReadings:
    """Return the readings of a device's timer."""
    return _in_order(_points(trace, device, ClockSource.TIMER))


def call_readings(trace: OpenClTrace, device: int, commands: Commands) -> ClockReadings:
    """Return the shortest enqueue call out of each of many stretches, and the layer's own empty commands."""
    chosen = commands[_shortest(commands["host_end_ns"] - commands["host_start_ns"], MOST_READINGS)]
    calls = np.column_stack([chosen["queued_ns"], chosen["host_start_ns"], chosen["host_end_ns"]])
    return _in_order(np.vstack([_points(trace, device, ClockSource.MARKER), calls]))


def joined(one: ClockReadings, other: ClockReadings) -> ClockReadings:
    """Return the readings of both."""
    parts = [np.column_stack([each.device_ns, each.host_before_ns, each.host_after_ns]) for each in (one, other)]
    return _in_order(np.vstack(parts))


def _points(trace: OpenClTrace, device: int, source: ClockSource) -> Times:
    points = [each for each in trace.clock_points if each.device == device and each.source is source]
    rows = [(each.device_ns, each.host_before_ns, each.host_after_ns) for each in points]
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def _in_order(rows: Times) -> ClockReadings:
    device_ns, before_ns, after_ns = rows[np.argsort(rows[:, 1], kind="stable")].T
    return ClockReadings(device_ns=device_ns, host_before_ns=before_ns, host_after_ns=after_ns)


#: The most by which two clocks drift apart: the kernel slews its clock by at most 500 ppm (adjtimex(2)), on top of what
#: two crystals differ by.
MOST_RATE = 700e-6
#: How far the rate may be from its mean within a run, whatever the readings say: crystals drift by less as they warm
#: up, but the host's clock is slewed. More than this counts where the readings show it.
LEAST_RATE_CHANGE = 10e-6

#: Readings of which the rate is taken, at most: it looks at every pair of them. The bounds are of all readings.
_MOST_PAIRED = 1024

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClockSegment:
    """A stretch in which a device's clock runs on steadily: the bounds of the offset, `base_ns` taken off."""

    #: Host times of the first and of the last reading.
    host_first_ns: int
    host_last_ns: int
    n_readings: int
    #: Device time and offset that the arrays count from.
    origin_ns: int
    base_ns: int
    #: Rate b by which the offset grows, and by how much the rate may differ from it.
    rate: float
    rate_change: float
    #: At each reading, the device's time and the bounds that all readings together leave; b t is taken off these.
    at_ns: _Floats
    lower_ns: _Floats
    upper_ns: _Floats

    def host_times(self, device_ns: Times) -> tuple[Times, _Floats]:
        """Return host times, ns, and the most by which each may be wrong, ns."""
        after_ns = (device_ns - self.origin_ns).astype(np.float64)
        offset_ns = np.interp(after_ns, self.at_ns, (self.lower_ns + self.upper_ns) / 2)
        lower_ns, upper_ns = self._bounds(after_ns)
        error_ns = np.maximum(upper_ns - offset_ns, offset_ns - lower_ns)
        shift_ns = np.rint(offset_ns + self.rate * after_ns).astype(np.int64)
        return device_ns + self.base_ns + shift_ns, np.ceil(error_ns)

    def _bounds(self, after_ns: _Floats) -> tuple[_Floats, _Floats]:
        """Return the bounds from the readings on either side, which carry those of all others."""
        right = np.searchsorted(self.at_ns, after_ns).clip(1, max(1, self.at_ns.size - 1))
        sides = (right - 1, np.minimum(right, self.at_ns.size - 1))
        spreads = [self.rate_change * np.abs(after_ns - self.at_ns[side]) for side in sides]
        lower_ns = np.maximum(*(self.lower_ns[side] - spread for side, spread in zip(sides, spreads, strict=True)))
        upper_ns = np.minimum(*(self.upper_ns[side] + spread for side, spread in zip(sides, spreads, strict=True)))
        return lower_ns, upper_ns


def fit_segments(readings: ClockReadings) -> tuple[ClockSegment, ...]:
    """Fit steady stretches to readings; a clock that steps or wraps begins another.

    A single reading that fits neither to those before nor to those after it is left out, where others fit together.
    """
    parts = _steady_parts(readings)
    while len({part.size > 1 for part in parts}) == 2:
        readings = readings.part(np.concatenate([part for part in parts if part.size > 1]))
        parts = _steady_parts(readings)
    return tuple(_segment(readings.part(part)) for part in parts)


def _steady_parts(readings: ClockReadings) -> list[npt.NDArray[np.intp]]:
    """Part the readings where the offset moves faster than clocks drift."""
    parts, begin = [], 0
    while begin < readings.device_ns.size:
        end = begin + _n_steady(readings.part(slice(begin, None)))
        parts.append(np.arange(begin, end))
        begin = end
    return parts


def _n_steady(readings: ClockReadings) -> int:
    """Count the first readings that a clock of a rate within `MOST_RATE` can have shown."""
    reach_ns = MOST_RATE * (readings.host_before_ns - readings.host_before_ns[0])
    base_ns = readings.lower_ns[0]
    lower_ns = np.maximum.accumulate(readings.lower_ns - base_ns + reach_ns) - reach_ns
    upper_ns = np.minimum.accumulate(readings.upper_ns - base_ns - reach_ns) + reach_ns
    apart = np.flatnonzero(lower_ns > upper_ns)
    return max(1, int(apart[0])) if apart.size else readings.device_ns.size


def _segment(readings: ClockReadings) -> ClockSegment:
    ordered = readings.part(np.argsort(readings.device_ns, kind="stable"))
    origin_ns, base_ns = int(ordered.device_ns[0]), int(ordered.lower_ns[0])
    at_ns = (ordered.device_ns - origin_ns).astype(np.float64)
    lower_ns, upper_ns = ((each - base_ns).astype(np.float64) for each in (ordered.lower_ns, ordered.upper_ns))
    rate, rate_change = _rate(at_ns, lower_ns, upper_ns)
    bounds = (lower_ns - rate * at_ns, upper_ns - rate * at_ns)
    tight = _tightened(at_ns, *bounds, rate_change)
    while (tight[0] > tight[1]).any() and rate_change < 2 * MOST_RATE:
        rate_change *= 2
        tight = _tightened(at_ns, *bounds, rate_change)
    return ClockSegment(
        host_first_ns=int(readings.host_before_ns[0]),
        host_last_ns=int(readings.host_before_ns[-1]),
        n_readings=int(at_ns.size),
        origin_ns=origin_ns,
        base_ns=base_ns,
        rate=rate,
        rate_change=rate_change,
        at_ns=at_ns,
        lower_ns=tight[0],
        upper_ns=tight[1],
    )


def _rate(at_ns: _Floats, lower_ns: _Floats, upper_ns: _Floats) -> tuple[float, float]:
    """Return the middle of the rates that all pairs of readings allow, and how far the rate may be from it.

    Readings i before j allow (lower_j - upper_i) / (t_j - t_i) to (upper_j - lower_i) / (t_j - t_i). Where no rate
    suits all pairs, the rate was not constant, and the middle of what they disagree about stands for it. Of many
    readings the shortest out of each of `_MOST_PAIRED` stretches are paired, which allow no less than all.
    """
    paired = _shortest(upper_ns - lower_ns, _MOST_PAIRED)
    at_ns, lower_ns, upper_ns = at_ns[paired], lower_ns[paired], upper_ns[paired]
    first, last = np.triu_indices(at_ns.size, 1)
    apart_ns = at_ns[last] - at_ns[first]
    is_apart = apart_ns > 0
    first, last, apart_ns = first[is_apart], last[is_apart], apart_ns[is_apart]
    least = max(-MOST_RATE, float(np.max((lower_ns[last] - upper_ns[first]) / apart_ns, initial=-MOST_RATE)))
    most = min(MOST_RATE, float(np.min((upper_ns[last] - lower_ns[first]) / apart_ns, initial=MOST_RATE)))
    return (least + most) / 2, LEAST_RATE_CHANGE + abs(most - least) / 2


def _shortest(length_ns: npt.NDArray[np.generic], most: int) -> npt.NDArray[np.intp]:
    """Return where the shortest of each stretch is, of `most` stretches or fewer."""
    n_each = max(1, -(-length_ns.size // most))
    stretches = np.append(length_ns, np.full(-length_ns.size % n_each, np.inf)).reshape(-1, n_each)
    chosen: npt.NDArray[np.intp] = stretches.argmin(axis=1) + n_each * np.arange(len(stretches))
    return chosen


def _tightened(at_ns: _Floats, lower_ns: _Floats, upper_ns: _Floats, rate_change: float) -> tuple[_Floats, _Floats]:
    """Let each reading bound the offset at all others."""
    return _raised(at_ns, lower_ns, rate_change), -_raised(at_ns, -upper_ns, rate_change)


def _raised(at_ns: _Floats, lower_ns: _Floats, rate_change: float) -> _Floats:
    """Return max over j of (lower_j - r |t_i - t_j|)."""
    reach_ns = rate_change * at_ns
    before_ns = np.maximum.accumulate(lower_ns + reach_ns) - reach_ns
    after_ns = np.maximum.accumulate((lower_ns - reach_ns)[::-1])[::-1] + reach_ns
    return np.maximum(before_ns, after_ns)
