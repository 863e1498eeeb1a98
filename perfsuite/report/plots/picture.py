"""A chart as a picture: drawn as its kind is, in a file of one of the known formats."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LogNorm
from matplotlib.figure import Figure

from perfsuite.errors import PerfsuiteError
from perfsuite.records.chart import (
    BarPanel,
    Chart,
    HeatMap,
    HeatPanel,
    Line,
    LineChart,
    LinePanel,
    RooflineChart,
    ScatterChart,
    ScatterPanel,
    StackedBars,
)
from perfsuite.records.whole_file import write_whole_bytes
from perfsuite.report.plots.formats import format_of
from perfsuite.report.plots.labels import Word, write_words
from perfsuite.report.plots.roofline import draw_roofline
from perfsuite.report.plots.style import (
    BAR_COLOURS,
    COLOURS,
    DASHES,
    MARKERS,
    REFERENCE_COLOUR,
    SETTINGS,
    add_colour_bar,
    add_legend,
    ink_on,
    numbered,
    scale_axes,
    sheet,
    significant,
)

#: Told apart by people of any colour vision: orange and purple around a centre, yellow to blue without one.
_DIVERGING = "PuOr_r"
_SEQUENTIAL = "cividis_r"


def draw_heat_map(chart: HeatMap) -> Figure:
    """Draw each panel's grid, its values in the cells, under one scale of colours."""
    figure, grid = sheet(chart)
    norm, colour_map = _heat_colours(chart)
    for axes, panel in zip(grid, chart.panels, strict=True):
        axes.grid(visible=False)
        scale_axes(axes, chart.x_axis, chart.y_axis)
        _draw_heat_panel(axes, panel, norm, colour_map)
    add_colour_bar(figure, grid, ScalarMappable(norm, colour_map), chart.colour_axis)
    return figure


def _heat_colours(chart: HeatMap) -> tuple[LogNorm, Colormap]:
    values = [value for panel in chart.panels for row in panel.values for value in row]
    least, most = min(values), max(values)
    if chart.centre is None:
        return LogNorm(least, most), matplotlib.colormaps[_SEQUENTIAL]
    reach = max(most / chart.centre, chart.centre / least)
    return LogNorm(chart.centre / reach, chart.centre * reach), matplotlib.colormaps[_DIVERGING]


def _draw_heat_panel(axes: Axes, panel: HeatPanel, norm: LogNorm, colour_map: Colormap) -> None:
    axes.pcolormesh(panel.x, panel.y, panel.values, norm=norm, cmap=colour_map, shading="nearest")
    if panel.boundary is not None:
        axes.plot(panel.boundary.x, panel.boundary.y, color="black", linewidth=1.8)
    for y, row in zip(panel.y, panel.values, strict=True):
        for x, value in zip(panel.x, row, strict=True):
            cell = colour_map(float(norm(value)))
            behind = {"facecolor": cell, "edgecolor": "none", "pad": 0.6}
            look: dict[str, Any] = {"fontsize": 7.5, "color": ink_on(cell), "bbox": behind}
            axes.text(x, y, significant(value, 2), ha="center", va="center", **look)  # over a line that may cross it
    axes.set(title=panel.title, xticks=panel.x, yticks=panel.y)


#: Grey for yellow, which is faint on white.
_POINT_COLOURS = (*COLOURS[:-1], "#777777")
_MARK_SIZE, _RING_SIZE = 6.5, 14.0


def draw_scatter(chart: ScatterChart) -> Figure:
    """Draw each panel's points, its lines and its rings; what is written at a point covers nothing."""
    figure, grid = sheet(chart)
    groups = [group for panel in chart.panels for group in panel.groups]
    looks = numbered(group.label for group in groups)
    kinds = numbered(group.kind for group in groups)
    for axes, panel in zip(grid, chart.panels, strict=True):
        for line in panel.lines:
            axes.plot(line.x, line.y, label=line.label, color=REFERENCE_COLOUR, linestyle="--", linewidth=1.4)
        for group in panel.groups:
            look = _point_look(looks[group.label], kinds[group.kind])
            label = f"{group.label}, {group.kind}" if group.kind else group.label
            axes.plot(group.x, group.y, linestyle="none", label=label, zorder=3.0, **look)
        if panel.ringed is not None:
            axes.plot(panel.ringed.x, panel.ringed.y, label=panel.ringed.label, **_RING)
        axes.set_title(panel.title)
        scale_axes(axes, panel.x_axis, panel.y_axis)
    add_legend(figure, grid)
    figure.draw_without_rendering()
    for axes, panel in zip(grid, chart.panels, strict=True):
        _write(figure, axes, panel)
    return figure


_RING: dict[str, Any] = {
    "linestyle": "none",
    "marker": "o",
    "markersize": _RING_SIZE,
    "markerfacecolor": "none",
    "markeredgecolor": REFERENCE_COLOUR,
    "markeredgewidth": 1.6,
    "zorder": 2.5,
}


def _point_look(place: int, kind: int) -> dict[str, Any]:
    """Give a label its colour and mark; of kinds the first is filled, the others are white with a coloured edge."""
    colour = _POINT_COLOURS[place % len(_POINT_COLOURS)]
    look = {"color": colour, "marker": MARKERS[place % len(MARKERS)], "markersize": _MARK_SIZE}
    return look if kind == 0 else {**look, "markerfacecolor": "white", "markeredgewidth": 1.4}


def _write(figure: Figure, axes: Axes, panel: ScatterPanel) -> None:
    points = [(x, y) for group in panel.groups for x, y in zip(group.x, group.y, strict=True)]
    words = [
        Word(text=text, anchors=((x, y),))
        for group in panel.groups
        for text, x, y in zip(group.texts, group.x, group.y, strict=False)
        if text
    ]
    write_words(figure, axes, words, points, [(line.x, line.y) for line in panel.lines])


#: Above the bars there is room for their totals.
_TOP_PCT = 124.0


def draw_stacked_bars(chart: StackedBars) -> Figure:
    """Draw each panel's bars as shares of their totals, which are above them."""
    figure, grid = sheet(chart)
    looks = numbered(layer.label for panel in chart.panels for layer in panel.layers)
    for axes, panel in zip(grid, chart.panels, strict=True):
        _draw_bars(axes, panel, looks)
        axes.set_xticks(range(len(chart.categories)), chart.categories, rotation=90)
        axes.set(xlabel=chart.x_axis.caption, ylabel=f"share of {chart.height_axis.label} (%)")
    add_legend(figure, grid)
    return figure


def _draw_bars(axes: Axes, panel: BarPanel, looks: dict[str, int]) -> None:
    totals = panel.totals
    bottoms = [0.0] * len(totals)
    for layer in panel.layers:
        shares = [100.0 * height / total for height, total in zip(layer.heights, totals, strict=True)]
        colour = BAR_COLOURS[looks[layer.label] % len(BAR_COLOURS)]
        axes.bar(range(len(totals)), shares, bottom=bottoms, label=layer.label, color=colour, width=0.85)
        bottoms = [bottom + share for bottom, share in zip(bottoms, shares, strict=True)]
    for place, total in enumerate(totals):
        axes.text(place, 102.0, significant(total, 3), ha="center", va="bottom", rotation=90, fontsize=7.5)
    axes.grid(visible=False, axis="x")
    axes.set(title=panel.title, xlim=(-0.7, len(totals) - 0.3), ylim=(0.0, _TOP_PCT), yticks=range(0, 101, 20))


#: Lines of more points go without marks.
_MOST_MARKED = 32
#: Each line is a little wider than the one drawn over it, so that it shows at its sides; the last is the narrowest.
_NARROWEST, _WIDER = 1.4, 0.25
#: A band below a line lets the other lines and bands through.
_BAND_ALPHA = 0.25


def draw_lines(chart: LineChart) -> Figure:
    """Draw each panel's lines over its axes; a label has the same colour, dashes and mark in all panels."""
    figure, grid = sheet(chart)
    looks = numbered(line.label for panel in chart.panels for line in panel.lines if not line.is_reference)
    for axes, panel in zip(grid, chart.panels, strict=True):
        _draw_lines_of(axes, panel, looks)
    add_legend(figure, grid)
    return figure


def _draw_lines_of(axes: Axes, panel: LinePanel, looks: dict[str, int]) -> None:
    for line in panel.lines:
        (drawn,) = axes.plot(line.x, line.y, label=line.label, **_line_look(line, looks))
        if line.low_y is not None:
            axes.fill_between(line.x, line.low_y, line.y, color=drawn.get_color(), alpha=_BAND_ALPHA, linewidth=0.0)
    axes.set_title(panel.title)
    scale_axes(axes, panel.x_axis, panel.y_axis)


def _line_look(line: Line, looks: dict[str, int]) -> dict[str, Any]:
    if line.is_reference:
        return {"color": REFERENCE_COLOUR, "linestyle": "--", "linewidth": 1.4}
    place = looks[line.label]
    look = {
        "color": COLOURS[place % len(COLOURS)],
        "linestyle": DASHES[place % len(DASHES)],
        "linewidth": _NARROWEST + _WIDER * (len(looks) - 1 - place),
    }
    if len(line.x) <= _MOST_MARKED:
        look |= {"marker": MARKERS[place % len(MARKERS)], "markersize": 4.0}
    return look


#: What a picture's file tells of itself, by format: nothing of the day or the machine.
_METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": "perfsuite"},
    "svg": {"Creator": "perfsuite", "Date": None},
}

_DRAWN_BY: dict[type[Any], Callable[[Any], Figure]] = {
    HeatMap: draw_heat_map,
    LineChart: draw_lines,
    RooflineChart: draw_roofline,
    ScatterChart: draw_scatter,
    StackedBars: draw_stacked_bars,
}


def write_picture(chart: Chart, path: Path) -> None:
    """Draw a chart into a file, in the format of its suffix.

    Raises PerfsuiteError where the suffix is of no known format, or the file cannot be written.
    """
    write_whole_bytes(path, picture_bytes(chart, format_of(path)), PerfsuiteError)


def picture_bytes(chart: Chart, file_format: str) -> bytes:
    """Draw a chart as PNG or SVG; the same chart gives the same SVG."""
    with style.context(["default", SETTINGS]):
        return figure_bytes(draw(chart), file_format)


def figure_bytes(figure: Figure, file_format: str) -> bytes:
    """Return a figure as a file that tells nothing of the day or the machine."""
    out = io.BytesIO()
    figure.savefig(out, format=file_format, metadata=_METADATA[file_format])
    return out.getvalue()


def draw(chart: Chart) -> Figure:
    """Draw a chart as its kind is drawn."""
    return _DRAWN_BY[type(chart)](chart)
