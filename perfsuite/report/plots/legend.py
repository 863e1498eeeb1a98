"""One legend for all panels of a picture."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

#: Characters of all labels of a line, and what the sign before each takes.
_LINE_WIDTH = 125
_SIGN_WIDTH = 10


def add_legend(figure: Figure, grid: Sequence[Axes]) -> None:
    """Explain each label once, below the panels."""
    by_label = {label: handle for axes in grid for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    longest = max(map(len, by_label)) + _SIGN_WIDTH
    n_columns = max(1, min(len(by_label), _LINE_WIDTH // longest))
    figure.legend(by_label.values(), by_label.keys(), loc="outside lower center", ncols=n_columns, handlelength=3.2)
