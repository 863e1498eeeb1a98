"""Charts of each kind as areas between axes, and signs that explain them.

A label has one look in all panels of a chart, and dashes or a shape beside its colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from markupsafe import Markup

from perfsuite.records.chart import (
    BarPanel,
    HeatMap,
    HeatPanel,
    Line,
    LineRole,
    Numbers,
    PointGroup,
    StackedBars,
    XYChart,
    XYPanel,
)
from perfsuite.report.charts.axes import Axis, chart_axis, linear_axis
from perfsuite.report.charts.svg import (
    Canvas,
    Look,
    across,
    block,
    down,
    ink_on,
    log_part,
    look_of,
    mark,
    rule,
    shade,
    significant,
    words,
)


class Area(NamedTuple):
    """What lies between the axes of one panel."""

    title: str
    canvas: Canvas
    marks: Sequence[Markup]
    #: Names along x; None where the axis has numbers.
    x_labels: Sequence[tuple[float, str]] | None = None


class Drawing(NamedTuple):
    """All panels of a chart, and by what it means, each sign that they use."""

    areas: Sequence[Area]
    signs: Mapping[str, Markup]


def line_sign(look: str) -> Markup:
    """Return the sign of a line in a legend."""
    return rule(0.0, 7.0, 1.0, 7.0, look)


def curve(canvas: Canvas, width: float, points: Iterable[tuple[float, float]], look: str) -> Markup:
    """Return a line through points, in pixels."""
    places = (f"{canvas.x.part(x) * width:.1f} {canvas.down(y):.1f}" for x, y in points)
    return Markup('<path class="{}" d="M{}"/>').format(look, "L".join(places))


def heat_map(chart: HeatMap, width: float, height: int) -> Drawing:
    """Draw each panel's grid, with the values in the cells, under one scale of shades."""
    values = [value for panel in chart.panels for row in panel.values for value in row]
    areas = []
    for panel in chart.panels:
        canvas = Canvas(x=_grid(chart.x_axis.label, panel.x), y=_grid(chart.y_axis.label, panel.y), height=height)
        blocks, texts = zip(*_cells(canvas, panel, values), strict=True)
        lines = [curve(canvas, width, zip(line.x, line.y, strict=True), "ink") for line in [panel.boundary] if line]
        areas.append(Area(panel.title, canvas, [*blocks, *lines, *texts]))
    ends = f"{significant(min(values), 2)} to {significant(max(values), 2)}"
    signs = {f"{chart.colour_axis.label}: {ends}, the larger the darker": _cell(0.2, 0.6, 2.0, 10.0, shade(0.8))}
    return Drawing(areas, signs | {each.boundary.label: line_sign("ink") for each in chart.panels if each.boundary})


def _grid(title: str, places: Numbers) -> Axis:
    """Return an axis that ends half a cell beyond the outermost places."""
    half = (places[-1] - places[0]) / max(1, len(places) - 1) / 2.0 or 0.5
    return Axis(title=title, low=places[0] - half, high=places[-1] + half, ticks=places)


def _cells(canvas: Canvas, panel: HeatPanel, values: Sequence[float]) -> Iterator[tuple[Markup, Markup]]:
    width, height = 1.0 / len(panel.x), canvas.height / len(panel.y)
    for y, row in zip(panel.y, panel.values, strict=True):
        for x, value in zip(panel.x, row, strict=True):
            colour = shade(log_part(value, values))
            left, middle = canvas.x.part(x) - width / 2.0, canvas.down(y)
            text = Markup('<text class="middle" style="fill:{}" x="{}" y="{}">{}</text>').format(
                ink_on(colour), across(canvas.x.part(x)), down(middle + 4.0), significant(value, 2)
            )
            yield _cell(left, width, middle - height / 2.0, height, colour), text


def _cell(left: float, width: float, top: float, height: float, colour: str) -> Markup:
    return Markup('<rect style="fill:{}" x="{}" y="{}" width="{}" height="{}"/>').format(
        colour, across(left), down(top), across(width), down(height)
    )


#: Of the distance of two bars, what is between them on each side; colours of the style.
_GAP, _N_COLOURS = 0.08, 6


def stacked_bars(chart: StackedBars, height: int) -> Drawing:
    """Draw each panel's bars as shares of their totals, which are above them."""
    labels = dict.fromkeys(layer.label for panel in chart.panels for layer in panel.layers)
    looks = {
        label: f"bar k{place % _N_COLOURS}{' f2' if place >= _N_COLOURS else ''}" for place, label in enumerate(labels)
    }
    n_bars = len(chart.categories)
    canvas = Canvas(
        x=Axis(title=chart.x_label, low=0.0, high=n_bars, ticks=()),
        y=linear_axis(f"share of {chart.height_label} (%)", 0.0, 100.0),
        height=height,
    )
    names = [(place + 0.5, name) for place, name in enumerate(chart.categories)]
    areas = [Area(panel.title, canvas, list(_bars(canvas, panel, looks)), names) for panel in chart.panels]
    return Drawing(areas, {label: block(0.1, 0.6, 2.0, 10.0, look) for label, look in looks.items()})


def _bars(canvas: Canvas, panel: BarPanel, looks: Mapping[str, str]) -> Iterator[Markup]:
    for place, total in enumerate(panel.totals):
        left, right = canvas.x.part(place + _GAP), canvas.x.part(place + 1.0 - _GAP)
        shares = [100.0 * layer.heights[place] / total for layer in panel.layers]
        for layer, share, top in zip(panel.layers, shares, accumulate(shares), strict=True):
            yield block(left, right, canvas.down(top), canvas.height * share / 100.0, looks[layer.label])
        yield words((left + right) / 2.0, -4.0, significant(total, 3), "middle")


#: Lines of more points go without marks.
_MOST_MARKED = 32
_N_DASHES = 6
_OWN_LOOKS = (LineRole.SERIES, LineRole.CURVE)
#: Pixels: how wide a character is at the most, on average, and what a mark takes to each side.
CHARACTER = 6.5
_MARK = 5.0


class _Looks(NamedTuple):
    #: By label and by kind: their places in order of first use.
    labels: Mapping[str, int]
    kinds: Mapping[str, int]

    def line(self, line: Line) -> str:
        """Return the classes of a line."""
        place = self.labels.get(line.label) if line.role in _OWN_LOOKS else None
        own = "" if place is None else f"{look_of(place).colour} d{place % _N_DASHES} "
        return f"{own}{line.role.value}"

    def mark(self, label: str, kind: str = "") -> Look:
        """Return what is at a point: shape and colour by its label, filling by its kind."""
        look = look_of(self.labels[label])
        return Look(colour=f"{look.colour} f{self.kinds.get(kind, 0)}", shape=look.shape)


def xy_chart(chart: XYChart, width: float, height: int) -> Drawing:
    """Draw each panel's lines and points, with what is written at them where there is room."""
    lines = [line for panel in chart.panels for line in panel.lines]
    groups = [group for panel in chart.panels for group in panel.groups]
    labels = [line.label for line in lines if line.role in _OWN_LOOKS]
    looks = _Looks(
        _numbered([*labels, *(each.label for each in groups)]),
        _numbered(each.kind for each in groups if not each.is_ring),
    )
    signs = {line.label: _sign(line, looks) for line in lines if line.role is not LineRole.FAINT}
    for group in groups:
        name = ", ".join(filter(None, (group.label, group.kind)))
        signs.setdefault(name, _point(0.5, 7.0, group, looks))
    return Drawing([_area(panel, looks, width, height) for panel in chart.panels], signs)


def _numbered(labels: Iterable[str]) -> dict[str, int]:
    return {label: place for place, label in enumerate(dict.fromkeys(labels))}


def _is_marked(line: Line) -> bool:
    return line.role is LineRole.SERIES and len(line.x) <= _MOST_MARKED


def _sign(line: Line, looks: _Looks) -> Markup:
    return line_sign(looks.line(line)) + (mark(0.5, 7.0, looks.mark(line.label)) if _is_marked(line) else Markup(""))


def _point(part: float, y: float, group: PointGroup, looks: _Looks) -> Markup:
    if group.is_ring:
        return Markup('<circle class="ring" cx="{}" cy="{}" r="8"/>').format(across(part), down(y))
    return mark(part, y, looks.mark(group.label, group.kind))


def _area(panel: XYPanel, looks: _Looks, width: float, height: int) -> Area:
    series: Sequence[Line | PointGroup] = [*panel.lines, *panel.groups]
    lows = [low for line in panel.lines for low in line.low_y or ()]
    canvas = Canvas(
        x=chart_axis(panel.x_axis, [x for each in series for x in each.x]),
        y=chart_axis(panel.y_axis, [*(y for each in series for y in each.y), *lows]),
        height=height,
    )
    marks = [curve(canvas, width, points, look) for look, points in _curves(panel.lines, looks)]
    for line in filter(_is_marked, panel.lines):
        marks += [canvas.mark(x, y, looks.mark(line.label)) for x, y in zip(line.x, line.y, strict=True)]
    for group in panel.groups:
        places = zip(group.x, group.y, strict=True)
        marks += [_point(canvas.x.part(x), canvas.down(y), group, looks) for x, y in places]
    return Area(panel.title, canvas, [*marks, *_names(panel, canvas, width)])


def _curves(lines: Sequence[Line], looks: _Looks) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    """Yield bands first, so that they cover no line."""
    for line in lines:
        if line.low_y is not None:
            edges = [*zip(line.x, line.y, strict=True), *zip(line.x[::-1], line.low_y[::-1], strict=True)]
            yield f"{looks.line(line)} band", edges
    for line in lines:
        yield looks.line(line), list(zip(line.x, line.y, strict=True))


#: Where words may stand beside their place: to the right and down in pixels, and which of their ends is there.
_PLACES = (
    *((7, -7, "start"), (-7, -7, "end"), (8, 4, "start"), (-8, 4, "end")),
    *((0, -8, "middle"), (0, 17, "middle"), (7, 15, "start"), (-7, 15, "end")),
    *((8, -20, "start"), (8, 28, "start"), (-8, -20, "end"), (-8, 28, "end")),
)
_BEFORE = {"start": 0.0, "middle": 0.5, "end": 1.0}


def _names(panel: XYPanel, canvas: Canvas, width: float) -> Iterator[Markup]:
    """Write names of points, then of faint lines at their ends, where they cover no mark and no other name."""
    places = [
        (x, y, text, "strong")
        for group in panel.groups
        for x, y, text in zip(group.x, group.y, group.texts or ("",) * len(group.x), strict=True)
    ]
    places += [(each.x[-1], each.y[-1], each.label, "") for each in panel.lines if each.role is LineRole.FAINT]
    taken = [_box(canvas.x.part(x) * width, canvas.down(y), "", "middle") for x, y, _, _ in places]
    for x, y, text, look in places:
        if text:
            part, top = canvas.x.part(x), canvas.down(y)
            boxes = [_box(part * width + right, top + below, text, end) for right, below, end in _PLACES]
            costs = [_cost(box, taken, width, canvas.height) for box in boxes]
            best = costs.index(min(costs))
            right, below, end = _PLACES[best]
            taken.append(boxes[best])
            yield words(part + right / width, top + below, text, f"{end} {look}".strip())


#: Left, top, right and bottom in pixels.
_Box = tuple[float, float, float, float]


def _box(x: float, y: float, text: str, end: str) -> _Box:
    """Return what words with their foot at a place take; without words, what a mark does."""
    if not text:
        return x - _MARK, y - _MARK, x + _MARK, y + _MARK
    wide = len(text) * CHARACTER
    return x - _BEFORE[end] * wide, y - 9.0, x + (1.0 - _BEFORE[end]) * wide, y + 3.0


def _cost(box: _Box, taken: Sequence[_Box], width: float, height: float) -> float:
    """Return what a box covers of others in square pixels, and many times what it has outside."""
    own = _shared(box, box)
    return sum(_shared(box, each) for each in taken) + 10.0 * (own - _shared(box, (0.0, 0.0, width, height)))


def _shared(one: _Box, other: _Box) -> float:
    wide, high = min(one[2], other[2]) - max(one[0], other[0]), min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, wide) * max(0.0, high)
