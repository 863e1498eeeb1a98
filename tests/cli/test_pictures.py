"""The pictures by name."""

from __future__ import annotations

import pytest

from perfsuite.cli.pictures import PICTURES


def test_all_of_lifes_pictures_are_there() -> None:
    """Figures 3 to 9."""
    assert [name for name in PICTURES if name.startswith("life-")] == [f"life-fig{number}" for number in range(3, 10)]


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_after_its_figure(name: str) -> None:
    """The note tells the figure of the paper that the name tells, and each axis a unit or a bare ratio."""
    chart = PICTURES[name].chart()
    assert f"Fig. {name.removeprefix('life-fig')}" in chart.note
    assert chart.title
    assert 1 <= chart.n_columns <= len(chart.panels)
