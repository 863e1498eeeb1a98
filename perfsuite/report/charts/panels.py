"""Heat maps and stacked bars, as areas between axes and signs that explain them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from markupsafe import Markup

from perfsuite.records.chart import BarPanel, HeatMap, HeatPanel, Numbers, StackedBars
from perfsuite.report.charts.axes import Axis, linear_axis
from perfsuite.report.charts.shades import ink_on, log_part, shade, significant
from perfsuite.report.charts.svg import Canvas, across, block, down, rule, words


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
