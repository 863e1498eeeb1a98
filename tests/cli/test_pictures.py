"""The pictures by name."""

from __future__ import annotations

import pytest

from perfsuite.cli.pictures import PICTURES
from perfsuite.expectation.roofline.published import published_devices
from perfsuite.records.chart import RooflineChart


def test_all_of_lifes_pictures_are_there() -> None:
    """Figures 3 to 9."""
    assert [name for name in PICTURES if name.startswith("life-")] == [f"life-fig{number}" for number in range(3, 10)]


@pytest.mark.parametrize("name", [name for name in PICTURES if name.startswith("life-")])
def test_a_picture_is_after_its_figure(name: str) -> None:
    """The note tells the figure of the paper that the name tells, and each axis a unit or a bare ratio."""
    chart = PICTURES[name].chart()
    assert f"Fig. {name.removeprefix('life-fig')}" in chart.note
    assert chart.title
    assert 1 <= chart.n_columns <= len(chart.panels)


def test_the_published_devices_are_drawn_by_name() -> None:
    """Every device that has both a peak and a bandwidth has its roof, and its ridge in its name."""
    chart = PICTURES["roofline-published"].chart()
    assert isinstance(chart, RooflineChart)
    labels = [roof.label for roof in chart.panels[0].roofs]
    assert "Apple M1 Pro, ridge 25.39" in labels
    assert len(labels) == sum(device.roof is not None for device in published_devices())
