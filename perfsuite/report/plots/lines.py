"""Draw lines."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from perfsuite.records.chart import Line, LineChart, LinePanel
from perfsuite.report.plots.legend import add_legend
from perfsuite.report.plots.panels import sheet
from perfsuite.report.plots.style import COLOURS, DASHES, MARKERS, REFERENCE_COLOUR, numbered, scale_axes

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
