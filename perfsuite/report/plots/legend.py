"""One legend, and one scale of colours, for all panels of a picture."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from perfsuite.records.chart import Axis
from perfsuite.report.plots.style import plain_numbers

#: Where each decade of an axis or of the colours has ticks.
TICKS = (1.0, 2.0, 5.0)

#: Characters of all labels of a line, and what the sign before each takes.
_LINE_WIDTH = 125
_SIGN_WIDTH = 10


def add_legend(figure: Figure, grid: Sequence[Axes]) -> None:
    """Explain each label once, below the panels."""
    by_label = {label: handle for axes in grid for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    longest = max(map(len, by_label)) + _SIGN_WIDTH
    n_columns = max(1, min(len(by_label), _LINE_WIDTH // longest))
    figure.legend(by_label.values(), by_label.keys(), loc="outside lower center", ncols=n_columns, handlelength=3.2)


def add_colour_bar(figure: Figure, grid: Sequence[Axes], colours: ScalarMappable, axis: Axis) -> None:
    """Explain the colours, which are logarithmic, beside the panels."""
    bar = figure.colorbar(colours, ax=grid, label=axis.caption, shrink=0.8)
    bar.ax.yaxis.set(major_locator=LogLocator(subs=TICKS), minor_locator=NullLocator(), major_formatter=plain_numbers())
