"""Words beside points and lines, each where it covers nothing: the first free place of those around its anchor."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from numpy.typing import NDArray

#: Left, bottom, right and top in pixels; and rows of these.
_Box: TypeAlias = tuple[float, float, float, float]
_Boxes: TypeAlias = NDArray[np.float64]

#: How far a text is from its anchor, in points, the nearest first, and from where on a thin line leads to it.
_REACHES = (6.0, 16.0, 32.0, 48.0)
_LED_FROM = 16.0


class _Place(NamedTuple):
    reach: float
    #: In points, to the right and up.
    offset: tuple[float, float]
    #: Which corner or edge of the text lies there.
    horizontal: str
    vertical: str

    @property
    def is_led(self) -> bool:
        return self.reach >= _LED_FROM


_PLACES = tuple(
    _Place(reach, (right * reach, up * reach), horizontal, vertical)
    for reach in _REACHES
    for right, up, horizontal, vertical in (
        (0.0, 1.0, "center", "bottom"),
        (1.0, 0.0, "left", "center"),
        (0.0, -1.0, "center", "top"),
        (-1.0, 0.0, "right", "center"),
        (0.7, 0.7, "left", "bottom"),
        (0.7, -0.7, "left", "top"),
        (-0.7, 0.7, "right", "bottom"),
        (-0.7, -0.7, "right", "top"),
    )
)
#: Half the width of what is kept free around a mark and along a line, and the distance of places along it, in points.
_MARK, _STROKE, _STEP = 4.5, 1.5, 3.0
#: How much worse it is to leave the axes than to cover something in them.
_OUTSIDE_WEIGHT = 4.0
#: What crossing a word costs, in square pixels, and in how many points it is looked for.
_CROSSING_COST, _LEAD_POINTS = 200.0, 24
#: The part of a text's width or height that lies before its anchor.
_BEFORE = {"left": 0.0, "bottom": 0.0, "center": 0.5, "right": 1.0, "top": 1.0}
_POINTS_PER_INCH = 72.0
_FONT_SIZE = 7.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A text and the point that it is about, in the units of the axes, or several of which one will do."""

    text: str
    anchors: tuple[tuple[float, float], ...]
    #: Whether it belongs to what is drawn beside the points, and is as faint as that.
    is_faint: bool = False


def write_words(
    figure: Figure,
    axes: Axes,
    words: Sequence[Word],
    marks: Iterable[tuple[float, float]],
    strokes: Iterable[tuple[Sequence[float], Sequence[float]]],
) -> None:
    """Write each word where it meets no other, no mark, no stroke and no edge; where nothing is free, where least.

    The picture must be laid out by then: what is written here leaves the layout as it is.
    """
    unit = figure.dpi / _POINTS_PER_INCH
    taken = [_box_around(*_pixels(axes, x, y), _MARK * unit) for x, y in marks]
    taken += [_box_around(x, y, _STROKE * unit) for stroke in strokes for x, y in _along(axes, *stroke, _STEP * unit)]
    edges = np.asarray(axes.get_window_extent().extents, dtype=np.float64)
    written: list[_Box] = []
    for word in words:
        text = _annotation(axes, word)
        extent = text.get_window_extent()
        size = (float(extent.width) / unit + 2.0, float(extent.height) / unit + 2.0)
        ways = [
            (anchor, place)
            for reach in _REACHES
            for anchor in word.anchors
            for place in _PLACES
            if place.reach == reach
        ]
        pixels = [_pixels(axes, *anchor) for anchor, _ in ways]
        boxes = np.array([_box(at, size, place, unit) for at, (_, place) in zip(pixels, ways, strict=True)])
        crossed = [_crossed(at, place, unit, written) for at, (_, place) in zip(pixels, ways, strict=True)]
        chosen = int(np.argmin(_covered(boxes, np.array(taken).reshape(-1, 4), edges) + crossed))
        anchor, place = ways[chosen]
        text.xy = anchor
        text.set(position=place.offset, horizontalalignment=place.horizontal, verticalalignment=place.vertical)
        written.append(tuple(boxes[chosen]))
        taken.append(written[-1])
        if place.is_led:
            _lead(axes, anchor, place)


def _annotation(axes: Axes, word: Word) -> Annotation:
    written = axes.annotate(
        word.text,
        word.anchors[0],
        xytext=(0.0, 0.0),
        textcoords="offset points",
        fontsize=_FONT_SIZE,
        color="#555555" if word.is_faint else "black",
        linespacing=1.1,
        annotation_clip=False,
        zorder=6.0,
    )
    written.set_in_layout(False)
    return written


def _box(anchor: tuple[float, float], size: tuple[float, float], place: _Place, unit: float) -> _Box:
    """Return where a text of a size in points lies, in pixels."""
    width, height = size
    left = place.offset[0] - _BEFORE[place.horizontal] * width
    bottom = place.offset[1] - _BEFORE[place.vertical] * height
    x, y = anchor[0] + left * unit, anchor[1] + bottom * unit
    return x, y, x + width * unit, y + height * unit


def _crossed(anchor: tuple[float, float], place: _Place, unit: float, words: Sequence[_Box]) -> float:
    """Return a cost for each word that the thin line from a place to its anchor would cross."""
    if not words or not place.is_led:
        return 0.0
    parts = np.linspace(0.0, 1.0, _LEAD_POINTS)
    x, y = anchor[0] + parts * place.offset[0] * unit, anchor[1] + parts * place.offset[1] * unit
    boxes = np.array(words)[:, :, np.newaxis]
    inside = (boxes[:, 0] < x) & (x < boxes[:, 2]) & (boxes[:, 1] < y) & (y < boxes[:, 3])
    return _CROSSING_COST * float(inside.any(axis=1).sum())


def _covered(boxes: _Boxes, taken: _Boxes, edges: _Boxes) -> _Boxes:
    """Return the area in square pixels that each box shares with others, and several times what it has outside."""
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    outside = areas - _shared(boxes, edges[np.newaxis, :]).sum(axis=1)
    covered: _Boxes = _shared(boxes, taken).sum(axis=1) + _OUTSIDE_WEIGHT * outside
    return covered


def _shared(boxes: _Boxes, others: _Boxes) -> _Boxes:
    """Return the area that each box (rows) shares with each of the others (columns)."""
    low = np.maximum(boxes[:, np.newaxis, :2], others[np.newaxis, :, :2])
    high = np.minimum(boxes[:, np.newaxis, 2:], others[np.newaxis, :, 2:])
    shared: _Boxes = np.prod(np.maximum(high - low, 0.0), axis=2)
    return shared


def _along(axes: Axes, x: Sequence[float], y: Sequence[float], step: float) -> Iterator[tuple[float, float]]:
    corners = [_pixels(axes, *each) for each in zip(x, y, strict=True)]
    for (x0, y0), (x1, y1) in pairwise(corners):
        n_steps = max(1, math.ceil(math.hypot(x1 - x0, y1 - y0) / step))
        for place in range(n_steps + 1):
            part = place / n_steps
            yield x0 + part * (x1 - x0), y0 + part * (y1 - y0)


def _pixels(axes: Axes, x: float, y: float) -> tuple[float, float]:
    across, up = axes.transData.transform((x, y))
    return float(across), float(up)


def _box_around(x: float, y: float, reach: float) -> _Box:
    return x - reach, y - reach, x + reach, y + reach


def _lead(axes: Axes, anchor: tuple[float, float], place: _Place) -> None:
    line = axes.annotate(
        "",
        anchor,
        xytext=place.offset,
        textcoords="offset points",
        arrowprops={"arrowstyle": "-", "color": "#888888", "linewidth": 0.5, "shrinkA": 0.0, "shrinkB": 2.0},
        annotation_clip=False,
    )
    line.set_in_layout(False)
