"""Draw heat maps."""

from __future__ import annotations

from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LogNorm
from matplotlib.figure import Figure

from perfsuite.records.chart import HeatMap, HeatPanel
from perfsuite.report.plots.legend import add_colour_bar
from perfsuite.report.plots.panels import sheet
from perfsuite.report.plots.style import ink_on, scale_axes, significant

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
