"""Stacked bars."""

from __future__ import annotations

from matplotlib.patches import Rectangle

from perfsuite.report.plots.stacked_bars import draw_stacked_bars

from .conftest import BARS


def test_bars_are_shares_that_stand_on_each_other() -> None:
    """1 and 3 are a quarter and three quarters; 300 and 100 the other way round."""
    axes = draw_stacked_bars(BARS).axes[0]
    boxes = [(box.get_y(), box.get_height()) for box in axes.patches if isinstance(box, Rectangle)]
    assert boxes == [(0.0, 25.0), (0.0, 75.0), (25.0, 75.0), (75.0, 25.0)]
    assert axes.get_ylabel() == "share of operations (%)"
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["small", "large"]


def test_totals_stand_above_the_bars() -> None:
    """With three digits, and whole where there are more."""
    axes = draw_stacked_bars(BARS).axes[0]
    assert [text.get_text() for text in axes.texts] == ["4.00", "400"]
    assert all(100.0 < text.get_position()[1] < axes.get_ylim()[1] for text in axes.texts)


def test_layers_differ_in_colour() -> None:
    """And the legend tells them in order."""
    figure = draw_stacked_bars(BARS)
    colours = [box.get_facecolor() for box in figure.axes[0].patches]
    assert colours[0] == colours[1] != colours[2] == colours[3]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
