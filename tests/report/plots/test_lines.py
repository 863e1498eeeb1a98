"""Lines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from perfsuite.records.chart import Line, LineChart
from perfsuite.report.plots.lines import draw_lines

from .conftest import LINES


def with_lines(lines: tuple[Line, ...]) -> LineChart:
    """The chart with one panel of these lines."""
    return replace(LINES, n_columns=1, panels=(replace(LINES.panels[0], lines=lines),))


def test_lines_go_through_their_points() -> None:
    """In every panel, under its title and its axes' names with their units."""
    figure = draw_lines(LINES)
    for axes, panel in zip(figure.axes, LINES.panels, strict=True):
        assert axes.get_title() == panel.title
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("size (tokens)", "time (ms)")
        for drawn, line in zip(axes.lines, panel.lines, strict=True):
            assert tuple(np.asarray(drawn.get_xdata())) == line.x
            assert tuple(np.asarray(drawn.get_ydata())) == line.y


def test_axes_are_divided_and_end_as_they_say() -> None:
    """A logarithm to the base 2 has ticks as plain numbers; an end that is not given is the series' own."""
    axes = draw_lines(LINES).axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")
    assert axes.xaxis.get_major_formatter()(128.0, 0) == "128"
    low, high = axes.get_ylim()
    assert low == 0.0
    assert 8.0 < high < 9.0


def test_a_label_looks_alike_in_all_panels() -> None:
    """Colour, dashes and mark belong to the label, and no two labels share all."""
    figure = draw_lines(LINES)
    looks = [
        [(line.get_color(), line.get_linestyle(), line.get_marker()) for line in axes.lines] for axes in figure.axes
    ]
    assert looks[0] == looks[1] == looks[2]
    assert len(set(looks[0])) == 3
    assert len({colour for colour, _, _ in looks[0]}) == 3


def test_the_legend_tells_each_label_once() -> None:
    """One legend for all panels."""
    (legend,) = draw_lines(LINES).legends
    assert [text.get_text() for text in legend.get_texts()] == ["once", "twice", "mean"]


@pytest.mark.parametrize(("n_points", "marker"), [(32, "o"), (33, "None")])
def test_lines_of_many_points_have_no_marks(n_points: int, marker: str) -> None:
    """Marks that touch each other would hide the line."""
    points = tuple(float(place) for place in range(1, n_points + 1))
    figure = draw_lines(with_lines((Line(label="a", x=points, y=points),)))
    assert figure.axes[0].lines[0].get_marker() == marker


def test_a_band_reaches_from_a_line_down_to_its_lows() -> None:
    """In the line's own colour; a line without lows has none."""
    lines = (Line(label="a", x=(1.0, 2.0), y=(4.0, 3.0), low_y=(3.0, 1.0)), Line(label="b", x=(1.0, 2.0), y=(1.0, 1.0)))
    axes = draw_lines(with_lines(lines)).axes[0]
    (band,) = axes.collections
    corners = {(float(x), float(y)) for x, y in band.get_paths()[0].vertices}
    assert corners == {(1.0, 4.0), (2.0, 3.0), (1.0, 3.0), (2.0, 1.0)}
    assert tuple(np.asarray(band.get_facecolor())[0][:3]) == to_rgb(axes.lines[0].get_color())


def test_a_line_beneath_another_shows_at_its_sides() -> None:
    """Of two lines on the same points the one drawn first is the wider."""
    lower, upper = (Line(label=label, x=(1.0, 2.0), y=(1.0, 2.0)) for label in ("a", "b"))
    first, second = draw_lines(with_lines((lower, upper))).axes[0].lines
    assert first.get_linewidth() > second.get_linewidth()
