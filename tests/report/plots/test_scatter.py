"""Points with their names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perfsuite.records.chart import Axis, Line, PointGroup, ScatterChart, ScatterPanel
from perfsuite.report.plots.picture import draw, picture_bytes
from perfsuite.report.plots.scatter import draw_scatter

PANEL = ScatterPanel(
    title="left",
    x_axis=Axis(label="time", unit="s", least=0.0),
    y_axis=Axis(label="accuracy"),
    groups=(
        PointGroup(label="old", kind="original", x=(1.0, 2.0), y=(0.2, 0.6), texts=("a", "b")),
        PointGroup(label="old", kind="quantised", x=(0.5,), y=(0.1,), texts=("c",)),
        PointGroup(label="new", kind="original", x=(4.0,), y=(0.9,)),
    ),
    lines=(Line(label="frontier", x=(0.5, 1.0, 4.0), y=(0.1, 0.2, 0.9)),),
    ringed=PointGroup(label="knee", kind="", x=(2.0,), y=(0.6,)),
)
CHART = ScatterChart(title="Slow is good", note="of four", n_columns=2, panels=(PANEL, replace(PANEL, title="right")))


def drawn(axes: Axes, label: str) -> Line2D:
    """Return what is drawn under a label."""
    (found,) = (line for line in axes.lines if line.get_label() == label)
    return found


def points(line: Line2D) -> list[tuple[float, float]]:
    """Return where something is drawn."""
    return list(zip(np.asarray(line.get_xdata()), np.asarray(line.get_ydata()), strict=True))


def test_points_lines_and_rings_are_where_they_belong() -> None:
    """In each panel, under its title and its axes' names."""
    figure = draw_scatter(CHART)
    for axes, title in zip(figure.axes, ("left", "right"), strict=True):
        assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == (title, "time (s)", "accuracy")
        assert points(drawn(axes, "old, original")) == [(1.0, 0.2), (2.0, 0.6)]
        assert points(drawn(axes, "frontier")) == [(0.5, 0.1), (1.0, 0.2), (4.0, 0.9)]
        assert points(drawn(axes, "knee")) == [(2.0, 0.6)]


def test_labels_have_a_mark_and_kinds_a_filling() -> None:
    """One label is one colour and mark in all panels; what is not of the first kind is white within."""
    left, right = draw_scatter(CHART).axes
    original, quantised, new = (drawn(left, label) for label in ("old, original", "old, quantised", "new, original"))
    assert (original.get_color(), original.get_marker()) == (quantised.get_color(), quantised.get_marker())
    assert original.get_color() != new.get_color()
    assert original.get_marker() != new.get_marker()
    assert [line.get_markerfacecolor() for line in (quantised, original)] == ["white", original.get_color()]
    assert drawn(right, "new, original").get_color() == new.get_color()


def test_names_are_written_beside_their_points() -> None:
    """Each text once a panel; a point without one stays without."""
    words = [text.get_text() for text in draw_scatter(CHART).axes[0].texts if text.get_text()]
    assert sorted(words) == ["a", "b", "c"]


def test_the_legend_explains_each_label_once() -> None:
    """Groups with their kinds, the line and the ring."""
    (legend,) = draw_scatter(CHART).legends
    names = [text.get_text() for text in legend.get_texts()]
    assert sorted(names) == ["frontier", "knee", "new, original", "old, original", "old, quantised"]


def test_a_kind_without_a_name_is_not_told() -> None:
    """A group of no kind is called by its label alone; nothing need be ringed."""
    group = PointGroup(label="all", kind="", x=(1.0,), y=(1.0,))
    figure = draw(replace(CHART, n_columns=1, panels=(replace(PANEL, groups=(group,), lines=(), ringed=None),)))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["all"]


@pytest.mark.parametrize("file_format", ["png", "svg"])
def test_it_is_drawn_in_each_format(file_format: str) -> None:
    """The same chart gives the same file."""
    first = picture_bytes(CHART, file_format)
    assert first == picture_bytes(CHART, file_format)
    assert len(first) > 1000
