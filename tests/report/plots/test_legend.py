"""The legend of a picture."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from perfsuite.report.plots.legend import add_legend


@pytest.mark.parametrize(("length", "n_columns"), [(1, 8), (20, 4), (300, 1)])
def test_longer_labels_make_fewer_columns(length: int, n_columns: int) -> None:
    """As many as fit beside each other, and one at least."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for place in range(8):
        axes.plot((0, 1), (0, place), label=str(place) * length)
    add_legend(figure, [axes])
    assert figure.legends[0]._ncols == n_columns
