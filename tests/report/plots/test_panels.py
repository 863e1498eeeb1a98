"""The sheet under a picture."""

from __future__ import annotations

from dataclasses import replace

import pytest
from matplotlib.figure import Figure

from perfsuite.report.plots.panels import add_legend, sheet

from .conftest import LINES


@pytest.mark.parametrize(("length", "n_columns"), [(1, 8), (20, 4), (300, 1)])
def test_longer_labels_make_fewer_columns(length: int, n_columns: int) -> None:
    """As many as fit beside each other, and one at least."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for place in range(8):
        axes.plot((0, 1), (0, place), label=str(place) * length)
    add_legend(figure, [axes])
    assert figure.legends[0]._ncols == n_columns


def head(title: str) -> list[str]:
    """The lines of a title on the sheet, with plain spaces."""
    figure, _ = sheet(replace(LINES, title=title))
    return figure.texts[0].get_text().replace("\N{NO-BREAK SPACE}", " ").split("\n")


def test_there_are_axes_for_each_panel_and_rows_make_a_picture_higher() -> None:
    """Three panels in two columns leave a place free; the height is one that a page holds."""
    figure, grid = sheet(LINES)
    assert len(grid) == len(figure.axes) == 3
    assert figure.get_figwidth() * figure.dpi == 1200
    heights = [sheet(replace(LINES, n_columns=columns))[0].get_figheight() for columns in (3, 2, 1)]
    assert heights[0] < heights[1] <= heights[2] < 9.0


def test_a_long_title_is_broken_into_lines_about_alike() -> None:
    """As few as it takes, and words stay whole."""
    lines = head("word-of-length " * 9 + "end")
    assert len(lines) == 2
    assert abs(len(lines[0]) - len(lines[1])) < 20
    assert " ".join(lines).split() == ["word-of-length"] * 9 + ["end"]
    assert head("short") == ["short"]


@pytest.mark.parametrize("unit", ["%", "s", "GFLOP/s", "KiB", "GiB/s"])
def test_a_number_stays_with_its_unit(unit: str) -> None:
    """Wherever the line ends."""
    for padding in range(80, 120):
        assert not any(line.startswith(unit) for line in head("x" * padding + f" takes 21 {unit} of it"))
