"""Words in free places."""

from __future__ import annotations

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

from perfsuite.report.plots.labels import Word, write_words


def page() -> tuple[Figure, Axes]:
    """Empty axes from 0 to 10 in both directions, without margins."""
    figure = Figure(figsize=(4.0, 4.0), dpi=100)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0.0, 10.0), ylim=(0.0, 10.0))
    return figure, axes


def boxes(axes: Axes) -> dict[str, Bbox]:
    """Where each word lies, without its anchor."""
    axes.figure.draw_without_rendering()
    found = [text for text in axes.texts if isinstance(text, Annotation) and text.get_text()]
    return {text.get_text(): Text.get_window_extent(text) for text in found}


def test_a_word_stands_above_its_anchor_where_that_is_free() -> None:
    """Centred and close; what lies above pushes it aside, another anchor is better than a long way."""
    figure, axes = page()
    write_words(figure, axes, [Word(text="here", anchors=((5.0, 5.0),))], [(5.0, 5.0)], [])
    box = boxes(axes)["here"]
    assert (box.x0 + box.x1) / 2 == pytest.approx(200.0, abs=1.0)
    assert 205.0 < box.y0 < 215.0
    assert len(axes.texts) == 1
    figure, axes = page()
    write_words(figure, axes, [Word(text="here", anchors=((5.0, 5.0),))], [(5.0, 5.3)], [((0.0, 10.0), (5.45, 5.45))])
    assert boxes(axes)["here"].y1 < 215.0
    figure, axes = page()
    words = [Word(text=f"the name of line {n}", anchors=((10.0, 5.0), (5.0, 5.0))) for n in range(3)]
    write_words(figure, axes, words, [], [((0.0, 10.0), (5.0, 5.0))])
    assert len(axes.texts) == 3


@pytest.mark.parametrize("corner", [(0.0, 0.0), (10.0, 10.0), (0.0, 10.0), (10.0, 0.0)])
def test_a_word_stays_inside(corner: tuple[float, float]) -> None:
    figure, axes = page()
    write_words(figure, axes, [Word(text="in the corner", anchors=(corner,))], [], [])
    box = boxes(axes)["in the corner"]
    assert -1.0 <= box.x0 < box.x1 <= 401.0
    assert -1.0 <= box.y0 < box.y1 <= 401.0
