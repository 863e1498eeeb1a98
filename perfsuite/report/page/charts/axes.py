"""Axes of figures: scaled times, and divisions that leave a phone room for their numbers.

Colours and shapes of what figures show: one thing looks alike in all figures, and is never told by colour alone.

Colours are in the middle of the lightness, so that each stands out from a white page and from a dark one. *Source*:
after Okabe and Ito, Color Universal Design, 2008, darker or lighter where theirs is faint on one of the two; WCAG 2.1,
1.4.11, a contrast of 3 to 1 for graphical objects.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfsuite.records.outcome import Outcome
from perfsuite.report.page.charts.figure import Spec
from perfsuite.units import common_time_unit, to_time_unit

BLUE = "#1F83C4"
VERMILLION = "#D55E00"
GREEN = "#009E73"
GOLD = "#B07C00"
PURPLE = "#B45F97"
GREY = "#7F7F7F"

#: For lines and groups without a meaning of their own, with their shapes and dashes.
COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, GOLD, GREY)
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (4, 2), (1, 3))


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How one kind of mark is drawn."""

    colour: str
    #: As Vega calls it, or a path in a square from -1 to 1.
    shape: str


#: A bar across a row, taller than other marks, so that both can be seen where it lies upon one.
BAR_SHAPE = "M-0.22,-1.5H0.22V1.5H-0.22Z"
#: A diamond of which the corners stand out where a circle lies upon it.
DIAMOND_SHAPE = "M0,-1.35L1.35,0L0,1.35L-1.35,0Z"

TIME_LOOKS = {
    "measured": Look(colour=BLUE, shape="circle"),
    "expected": Look(colour=GOLD, shape=DIAMOND_SHAPE),
    "floor": Look(colour=GREY, shape="triangle-right"),
    "baseline": Look(colour=PURPLE, shape=BAR_SHAPE),
    "old side": Look(colour=PURPLE, shape=BAR_SHAPE),
}

OUTCOME_LOOKS = {
    Outcome.INVALID: Look(colour=GREY, shape="cross"),
    Outcome.IMPOSSIBLE: Look(colour=VERMILLION, shape="cross"),
    Outcome.INCOMPARABLE: Look(colour=GREY, shape="square"),
    Outcome.REGRESSED: Look(colour=VERMILLION, shape="triangle-right"),
    Outcome.SLOW: Look(colour=VERMILLION, shape="triangle-up"),
    Outcome.INCONCLUSIVE: Look(colour=GOLD, shape="diamond"),
    Outcome.NEW: Look(colour=PURPLE, shape="square"),
    Outcome.IMPROVED: Look(colour=GREEN, shape="triangle-left"),
    Outcome.PASS: Look(colour=BLUE, shape="circle"),
}


def look_of(place: int) -> Look:
    """Return the look of one of several things without a meaning of their own; from the seventh on they repeat."""
    return Look(colour=COLOURS[place % len(COLOURS)], shape=SHAPES[place % len(SHAPES)])


#: Plain numbers: 0.001, 10, 1,000.
NUMBERS = ",~r"
#: The same with a sign.
CHANGES = "+,~r"
#: The only expression of a figure: no change has no sign.
UNSIGNED_ZERO = "datum.value === 0 ? '0' : datum.label"
#: The most divisions that a phone has room for, and the steps within a decade from which they are chosen.
_MOST_TICKS = 6
#: Below this ratio of its ends an axis is short.
_SHORT = 5.0
#: The least that an axis of levels shows, of the largest of them.
_LEVEL = 0.1
_STEPS = ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,))


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


def log_scale(values: Sequence[float]) -> Spec:
    """Return a logarithmic scale around positive values, with a little room at both ends."""
    return {"type": "log", "domain": list(_log_domain(values)), "nice": False}


def log_ticks(values: Sequence[float]) -> list[float]:
    """Divide a logarithmic axis around these values: evenly where it is short, else by 1, 2 and 5 or by decades."""
    low, high = _log_domain(values)
    if high / low < _SHORT:
        return _even_ticks(low, high)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in _STEPS:
        ticks = [shown(step * 10.0**decade) for decade in decades for step in steps]
        inside = [tick for tick in ticks if low <= tick <= high]
        if len(inside) <= _MOST_TICKS:
            return inside
    return inside[:: math.ceil(len(inside) / _MOST_TICKS)]


def _even_ticks(low: float, high: float) -> list[float]:
    decade = 10.0 ** math.floor(math.log10(high - low))
    step = next(each for each in (0.1, 0.2, 0.5, 1.0, 2.0) if (high - low) / (each * decade) <= _MOST_TICKS) * decade
    first, last = math.ceil(low / step), math.floor(high / step)
    return [shown(number * step) for number in range(first, last + 1)]


def log_axis(values: Sequence[float], title: str | None) -> Spec:
    """Return what an encoding over a logarithmic axis has beside its field."""
    axis = {"title": title, "values": log_ticks(values), "format": NUMBERS}
    return {"type": "quantitative", "scale": log_scale(values), "axis": axis}


def zero_axis(highest: float, title: str) -> Spec:
    """Return what an encoding over a linear axis from 0 has beside its field; marks clip what is beyond."""
    scale = {"domain": [0, shown(highest * 1.04)], "nice": False}
    return {"type": "quantitative", "scale": scale, "axis": {"title": title, "format": NUMBERS, "tickCount": 6}}


def change_axis(title: str, n_ticks: int) -> Spec:
    """Return the axis of changes, which have signs; no change has none."""
    return {"title": title, "format": CHANGES, "tickCount": n_ticks, "labelExpr": UNSIGNED_ZERO}


def level_axis(title: str, values: Sequence[float]) -> Spec:
    """Return a linear axis around values that may all be alike: it shows no less than a tenth of the largest."""
    low, high = min(values), max(values)
    room = (max(abs(low), abs(high)) * _LEVEL or 1.0) - (high - low)
    axis = linear_axis(title)
    if room > 0.0:
        lowest = low - room / 2.0 if low < 0.0 else max(0.0, low - room / 2.0)
        axis["scale"]["domain"] = [shown(lowest), shown(high + room / 2.0)]
    return axis


def linear_axis(title: str, numbers: str = NUMBERS) -> Spec:
    """Return what an encoding over a linear axis around its values has beside its field."""
    scale = {"zero": False, "nice": True}
    return {"type": "quantitative", "scale": scale, "axis": {"title": title, "format": numbers, "tickCount": 5}}


def row_axis(labels: Sequence[str]) -> Spec:
    """Return the encoding of rows that are named at the left, from the top; ``row`` is the field."""
    return {
        "field": "row",
        "type": "nominal",
        "scale": {"domain": list(labels)},
        "axis": {"title": None, "grid": True, "ticks": False, "domain": False, "labelPadding": 8},
    }


def looks(field: str, kinds: Mapping[str, Look], *, has_legend: bool = True) -> Spec:
    """Return the encoding of a kind by colour and shape together, under one legend."""
    channels = {"color": [look.colour for look in kinds.values()], "shape": [look.shape for look in kinds.values()]}
    nominal = {"field": field, "type": "nominal", "legend": {"title": None} if has_legend else None}
    return {
        channel: {**nominal, "scale": {"domain": list(kinds), "range": of_kinds}}
        for channel, of_kinds in channels.items()
    }


def layer(mark: str, rows: Sequence[Spec], encoding: Spec, **look: Any) -> Spec:
    """Return a layer of marks over rows of its own."""
    return {"data": {"values": list(rows)}, "mark": {"type": mark, **look}, "encoding": encoding}


def tip() -> Spec:
    """Return the encoding of what is reported of a mark when it is pointed at; ``tip`` is the field."""
    return {"field": "tip", "type": "nominal"}


def _log_domain(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = max((high / low) ** 0.04, 1.05)
    return shown(low / room), shown(high * room)
