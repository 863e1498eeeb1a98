"""Draw heat maps."""

from __future__ import annotations

from dataclasses import dataclass

import matplotlib
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from perfsuite.records.chart import HeatMap, HeatPanel
from perfsuite.report.plots.panels import sheet
from perfsuite.report.plots.style import ink_on, plain_numbers, scale_axes, significant

#: Told apart by people of any colour vision: orange and purple around a centre, yellow to blue without one.
_DIVERGING = "PuOr_r"
_SEQUENTIAL = "cividis_r"
#: Where each decade of the colours has ticks.
_TICKS = (1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Colours:
    """Which colour a value has."""

    norm: LogNorm
    colour_map: Colormap

    def of(self, value: float) -> tuple[float, float, float, float]:
        return self.colour_map(float(self.norm(value)))


def draw_heat_map(chart: HeatMap) -> Figure:
    """Draw each panel's grid, its values in the cells, under one scale of colours."""
    figure, grid = sheet(chart)
    colours = _colours(chart)
    for axes, panel in zip(grid, chart.panels, strict=True):
        axes.grid(visible=False)
        scale_axes(axes, chart.x_axis, chart.y_axis)
        _draw_panel(axes, panel, colours)
    bar = figure.colorbar(
        ScalarMappable(colours.norm, colours.colour_map), ax=grid, label=chart.colour_axis.caption, shrink=0.8
    )
    bar.ax.yaxis.set(
        major_locator=LogLocator(subs=_TICKS), minor_locator=NullLocator(), major_formatter=plain_numbers()
    )
    return figure


def _colours(chart: HeatMap) -> _Colours:
    values = [value for panel in chart.panels for row in panel.values for value in row]
    least, most = min(values), max(values)
    if chart.centre is None:
        return _Colours(norm=LogNorm(least, most), colour_map=matplotlib.colormaps[_SEQUENTIAL])
    reach = max(most / chart.centre, chart.centre / least)
    return _Colours(
        norm=LogNorm(chart.centre / reach, chart.centre * reach), colour_map=matplotlib.colormaps[_DIVERGING]
    )


def _draw_panel(axes: Axes, panel: HeatPanel, colours: _Colours) -> None:
    axes.pcolormesh(panel.x, panel.y, panel.values, norm=colours.norm, cmap=colours.colour_map, shading="nearest")
    if panel.boundary is not None:
        axes.plot(panel.boundary.x, panel.boundary.y, color="black", linewidth=1.8)
    for y, row in zip(panel.y, panel.values, strict=True):
        for x, value in zip(panel.x, row, strict=True):
            _write_value(axes, x, y, value, colours)
    axes.set(title=panel.title, xticks=panel.x, yticks=panel.y)


def _write_value(axes: Axes, x: float, y: float, value: float, colours: _Colours) -> None:
    """Write a value into its cell, over the line that may cross it."""
    cell = colours.of(value)
    behind = {"facecolor": cell, "edgecolor": "none", "pad": 0.6}
    axes.text(x, y, significant(value, 2), ha="center", va="center", fontsize=7.5, color=ink_on(cell), bbox=behind)
