"""Roofs and the region of inference potential below one of them, as lines within a frame."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from perfsuite.expectation.roofline.point import Point, Roof, memory_roof
from perfsuite.records.ceilings import Ceilings
from perfsuite.records.chart import Line, LineRole
from perfsuite.units import format_bytes, format_bytes_per_s, format_flops_per_s, to_giga_per_s

#: Rungs of working sets whose rates differ by no more are one level of memory, and levels closer than this one as well.
_ALIKE_RATIO, _APART_RATIO = 1.25, 1.4
#: Distances from the ridge at which contours are drawn, in decades, and points along the round part of one.
_CONTOURS = (0.5, 1.0, 1.5)
_ARC_POINTS = 24
#: The room beyond the outermost points and roofs.
_ROOM = 1.5


class Frame(NamedTuple):
    """Where the axes of a picture end: FLOP/byte and FLOP/s."""

    least_x: float
    most_x: float
    least_y: float
    most_y: float


def frame_of(points: Sequence[Point], roofs: Sequence[Roof]) -> Frame:
    """End the axes so that all points and ridges have room."""
    x = [*(each.operational_intensity for each in points), *(roof.ridge_point for roof in roofs)]
    y = [*(each.flops_per_s for each in points), *(roof.peak_flops_per_s for roof in roofs)]
    return Frame(min(x) / _ROOM, max(x) * _ROOM, min(y) / _ROOM, max(y) * _ROOM)


def roof_line(label: str, roof: Roof, frame: Frame, role: LineRole = LineRole.CURVE) -> Line:
    """Return a roof across the whole frame."""
    x = (frame.least_x, min(max(roof.ridge_point, frame.least_x), frame.most_x), frame.most_x)
    return Line(label=label, x=x, y=_heights(roof, x), role=role)


def _heights(roof: Roof, x: Iterable[float]) -> tuple[float, ...]:
    return tuple(to_giga_per_s(roof.attainable_flops_per_s(each)) for each in x)


def ridge_words(roof: Roof) -> str:
    """Write the intensity of the corner, FLOP/byte."""
    return f"ridge {roof.ridge_point:.2f}"


def arithmetic_roofs(ceilings: Ceilings) -> tuple[tuple[str, Roof], ...]:
    """Return the roofs over memory of all measured types of number, FP32 first."""
    classical = memory_roof(ceilings)
    peaks = (
        ("FP32", ceilings.fp32_flops_per_s),
        ("F16", ceilings.f16_flops_per_s),
        ("int8", ceilings.int8_flops_per_s),
    )
    return tuple((name, replace(classical, peak_flops_per_s=peak)) for name, peak in peaks if peak is not None)


def roof_above(arithmetic: Sequence[tuple[str, Roof]], points: Sequence[Point]) -> tuple[str, Roof]:
    """Return the lowest roof that no point's own peak is above, else the highest."""
    peak = max(point.roof.peak_flops_per_s for point in points)
    ascending = sorted(arithmetic, key=lambda each: each[1].peak_flops_per_s)
    return next((each for each in ascending if each[1].peak_flops_per_s >= peak * (1.0 - 1e-9)), ascending[-1])


def side_roofs(ceilings: Ceilings, frame: Frame) -> Iterator[Line]:
    """Yield the arithmetic other than FP32 over memory, and the slope of each level of cache up to the highest peak."""
    classical, *others = arithmetic_roofs(ceilings)
    for name, roof in others:
        yield roof_line(f"{name}, {format_flops_per_s(roof.peak_flops_per_s)}", roof, frame, LineRole.FAINT)
    peak = max(roof.peak_flops_per_s for _, roof in (classical, *others))
    for held_bytes, bytes_per_s in cache_levels(ceilings):
        slope = Roof(peak_flops_per_s=peak, bandwidth_bytes_per_s=bytes_per_s)
        if slope.ridge_point > frame.least_x:
            label = f"to {format_bytes(held_bytes)}: {format_bytes_per_s(bytes_per_s)}"
            x = (frame.least_x, slope.ridge_point)
            yield Line(label=label, x=x, y=_heights(slope, x), role=LineRole.FAINT)


def cache_levels(ceilings: Ceilings) -> tuple[tuple[int, float], ...]:
    """Return the plateaus of the ladder of working sets above memory: the largest set of each and its fastest rate.

    A plateau is two or more rungs on end of which each is within `_ALIKE_RATIO` of the one before, or the first rung
    alone, which any cache holds. Of plateaus closer together than `_APART_RATIO` the slower one, or memory, stands for
    both.
    """
    found: list[tuple[int, float]] = []
    slowest = ceilings.levels[-1][1]
    for run in reversed(_plateaus(ceilings.levels)):
        fastest = max(bytes_per_s for _, bytes_per_s in run)
        if fastest >= slowest * _APART_RATIO:
            found.append((run[-1][0], fastest))
            slowest = fastest
    return tuple(reversed(found))


def _plateaus(levels: Sequence[tuple[int, float]]) -> list[list[tuple[int, float]]]:
    runs: list[list[tuple[int, float]]] = []
    for level in levels:
        if runs and 1.0 / _ALIKE_RATIO <= level[1] / runs[-1][-1][1] <= _ALIKE_RATIO:
            runs[-1].append(level)
        else:
            runs.append([level])
    return [run for run in runs if len(run) > 1 or run is runs[0]]


def potential_region(roof: Roof, frame: Frame) -> Iterator[Line]:
    """Yield what lies below a roof as bands, in its two regimes, and lines of equal inference potential.

    On axes of log10 a contour is round about the ridge where memory is the limit, and level where arithmetic is.
    """
    for label, x in (
        ("limited by memory", (frame.least_x, roof.ridge_point)),
        ("limited by arithmetic", (roof.ridge_point, frame.most_x)),
    ):
        low_y = (to_giga_per_s(frame.least_y),) * 2
        yield Line(label=label, x=x, y=_heights(roof, x), low_y=low_y, role=LineRole.CURVE)
    for decades in _CONTOURS:
        if roof.peak_flops_per_s / 10.0**decades > frame.least_y:
            yield _contour(decades, roof, frame)


def _contour(decades: float, roof: Roof, frame: Frame) -> Line:
    """From the slope of the roof, where both distances are alike, round to below the ridge and on to the right."""
    angles = [math.pi * (1.25 + 0.25 * step / _ARC_POINTS) for step in range(_ARC_POINTS + 1)]
    x = [roof.ridge_point * 10.0 ** (decades * math.cos(angle)) for angle in angles]
    y = [roof.peak_flops_per_s * 10.0 ** (decades * math.sin(angle)) for angle in angles]
    return Line(
        label=f"{decades:g} decade{'' if decades == 1.0 else 's'}",
        x=(*x, frame.most_x),
        y=tuple(map(to_giga_per_s, (*y, y[-1]))),
        role=LineRole.FAINT,
    )
