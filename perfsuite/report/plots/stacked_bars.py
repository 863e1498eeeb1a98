"""Draw stacked bars."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from perfsuite.records.chart import BarPanel, StackedBars
from perfsuite.report.plots.legend import add_legend
from perfsuite.report.plots.panels import sheet
from perfsuite.report.plots.style import BAR_COLOURS, numbered, significant

#: Above the bars there is room for their totals.
_TOP_PCT = 124.0


def draw_stacked_bars(chart: StackedBars) -> Figure:
    """Draw each panel's bars as shares of their totals, which stand above them."""
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
