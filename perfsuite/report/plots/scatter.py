"""Draw points with their names."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from perfsuite.records.chart import ScatterChart, ScatterPanel
from perfsuite.report.plots.labels import Word, write_words
from perfsuite.report.plots.legend import add_legend
from perfsuite.report.plots.panels import sheet
from perfsuite.report.plots.style import COLOURS, MARKERS, REFERENCE_COLOUR, numbered, scale_axes

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
