"""Figure 8."""

from __future__ import annotations

from statistics import fmean

import pytest

from perfsuite.expectation.paper.figures import figure_8


def test_the_mean_at_tile_64_is_the_papers() -> None:
    """0.964 over contexts of 1 to 4096, stated, and drawn as a line of its own."""
    panel = figure_8().panels[0]
    saw, mean = panel.lines
    assert panel.title == "tile 64, mean 0.964"
    assert saw.x == tuple(range(1, 4097))
    assert fmean(saw.y) == pytest.approx(0.964, abs=5e-4)
    assert mean.is_reference
    assert mean.x == (1, 4096)
    assert mean.y == pytest.approx([fmean(saw.y)] * 2)


def test_teeth_end_at_whole_tiles() -> None:
    """All of the work is of use at multiples of the tile and nowhere else; right behind the first, half of it is."""
    for panel, tile in zip(figure_8().panels, (64, 128, 256), strict=True):
        saw = panel.lines[0]
        assert [x for x, y in zip(saw.x, saw.y, strict=True) if y == 1.0] == list(range(tile, 4097, tile))
        assert saw.y[tile] == (tile + 1) / (2 * tile)


def test_a_larger_tile_wastes_more() -> None:
    """The means fall with the tile, and the title tells what is lost at each."""
    chart = figure_8()
    means = [panel.lines[1].y[0] for panel in chart.panels]
    assert means == sorted(means, reverse=True)
    assert all(f"{100 * (1 - mean):.1f} %" in chart.title for mean in means)
