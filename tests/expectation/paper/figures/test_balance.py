"""The line on which two times are equal."""

from __future__ import annotations

from perfsuite.expectation.paper.figures.balance import balance_line

TENS = tuple(float(ten) for ten in range(10, 101, 10))


def test_a_line_ends_where_it_leaves_the_grid() -> None:
    """A steep one at the top, a flat one at the right, the diagonal in the corner."""
    steep, flat, diagonal = (balance_line(slope, TENS, TENS) for slope in (2.0, 0.25, 1.0))
    assert steep is not None
    assert (steep.x, steep.y) == ((10.0, 50.0), (20.0, 100.0))
    assert flat is not None
    assert (flat.x, flat.y) == ((40.0, 100.0), (10.0, 25.0))
    assert diagonal is not None
    assert diagonal.x == diagonal.y == (10.0, 100.0)


def test_a_line_beside_the_grid_is_none() -> None:
    """Where one of the times is longer everywhere, there is nothing to draw."""
    assert balance_line(20.0, TENS, TENS) is None
    assert balance_line(0.05, TENS, TENS) is None
