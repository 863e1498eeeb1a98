"""Axes of figures: where a value lies, and divisions that leave a phone room for their numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from perfsuite.records import chart
from perfsuite.units import common_time_unit, to_time_unit

#: The most divisions that a phone has room for, and the steps within a decade from which they are chosen.
_MOST_TICKS = 6
#: Below this ratio of its ends an axis is short.
_SHORT = 5.0
#: The least that an axis of levels shows, of the largest of them.
_LEVEL = 0.1
#: From here on a number is written with its power of ten.
_LARGE = 1e7
_STEPS = ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One direction of a picture."""

    title: str
    low: float
    high: float
    ticks: tuple[float, ...]
    is_log: bool = False
    #: Whether its numbers are changes, which have signs.
    is_signed: bool = False

    def part(self, value: float) -> float:
        """Return where a value lies, 0 at the low end and 1 at the high one; what is beyond lies at the end."""
        ends = (self.low, self.high, min(self.high, max(self.low, value)))
        low, high, at = map(math.log, ends) if self.is_log else ends
        return (at - low) / (high - low)

    def label(self, tick: float) -> str:
        """Write a division: 0.001, 10, 1,000, 1e+09; a change with its sign, and none at zero."""
        if abs(tick) >= _LARGE:
            return f"{tick:.3g}"
        return f"{tick:{'+' if self.is_signed and tick else ''},.10g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeScale:
    """One unit for all times of a figure."""

    unit: str

    @classmethod
    def of(cls, times_ns: Iterable[float]) -> TimeScale:
        """Choose the unit by the largest of the times."""
        return cls(unit=common_time_unit(times_ns))

    def __call__(self, time_ns: float) -> float:
        """Scale a time to five digits, which is more than can be seen."""
        return shown(to_time_unit(time_ns, self.unit))

    def title(self, words: str = "time") -> str:
        """Name an axis with the unit in brackets."""
        return f"{words} ({self.unit})"


def shown(value: float) -> float:
    """Round to five significant digits, so that a page holds no more than can be seen."""
    return float(f"{value:.5g}")


def log_axis(values: Sequence[float], title: str) -> Axis:
    """Return a logarithmic axis around positive values, with a little room at both ends."""
    low, high = min(values), max(values)
    room = max((high / low) ** 0.04, 1.05)
    low, high = shown(low / room), shown(high * room)
    return Axis(title=title, low=low, high=high, ticks=tuple(_log_ticks(low, high)), is_log=True)


def _log_ticks(low: float, high: float) -> list[float]:
    """Divide a logarithmic axis: evenly where it is short, else by 1, 2 and 5 or by decades."""
    if high / low < _SHORT:
        return _even_ticks(low, high)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in _STEPS:
        ticks = [shown(step * 10.0**decade) for decade in decades for step in steps]
        inside = [tick for tick in ticks if low <= tick <= high]
        if len(inside) <= _MOST_TICKS:
            return inside
    return inside[:: math.ceil(len(inside) / _MOST_TICKS)]


def _even_ticks(low: float, high: float, least_step: float = 0.0) -> list[float]:
    decade = 10.0 ** math.floor(math.log10(high - low))
    step = next(each for each in (0.1, 0.2, 0.5, 1.0, 2.0) if (high - low) / (each * decade) <= _MOST_TICKS) * decade
    step = max(step, least_step)
    first, last = math.ceil(round(low / step, 9)), math.floor(round(high / step, 9))
    return [shown(number * step) for number in range(first, last + 1)]


def linear_axis(title: str, low: float, high: float, *, is_signed: bool = False, least_step: float = 0.0) -> Axis:
    """Return a linear axis from one end to the other, which may be alike; counts have a least step of 1."""
    if high <= low:
        low, high = low - 0.5, low + 0.5
    return Axis(title=title, low=low, high=high, ticks=tuple(_even_ticks(low, high, least_step)), is_signed=is_signed)


def level_axis(title: str, values: Sequence[float]) -> Axis:
    """Return a linear axis around values that may all be alike: it shows no less than a tenth of the largest."""
    low, high = min(values), max(values)
    room = (max(abs(low), abs(high)) * _LEVEL or 1.0) - (high - low)
    if room > 0.0:
        low, high = (low - room / 2.0 if low < 0.0 else max(0.0, low - room / 2.0)), high + room / 2.0
    else:
        low, high = low - (high - low) * 0.05, high + (high - low) * 0.05
    return linear_axis(title, shown(low), shown(high))


def chart_axis(axis: chart.Axis, values: Iterable[float]) -> Axis:
    """Return the axis of a chart around its values; it ends and is divided as the chart says."""
    is_log = axis.scale is not chart.Scale.LINEAR
    known = [each for each in values if each > 0.0 or not is_log] or [1.0]
    around = log_axis(known, axis.label) if is_log else level_axis(axis.label, known)
    low = around.low if axis.least is None else axis.least
    high = around.high if axis.most is None else axis.most
    if is_log:
        ticks = tuple(_octaves(low, high) if axis.scale is chart.Scale.LOG2 else _log_ticks(low, high))
        return replace(around, low=low, high=high, ticks=ticks)
    scaled = linear_axis(axis.label, low, high)
    if axis.tick_step is None:
        return scaled
    first, last = math.ceil(low / axis.tick_step), math.floor(high / axis.tick_step)
    return replace(scaled, ticks=tuple(number * axis.tick_step for number in range(first, last + 1)))


def _octaves(low: float, high: float) -> list[float]:
    octaves = [2.0**power for power in range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)]
    return octaves[:: math.ceil(len(octaves) / _MOST_TICKS)] if len(octaves) > 1 else _log_ticks(low, high)
