"""Heat maps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba

from perfsuite.report.plots.heat_map import draw_heat_map

from .conftest import HEAT_MAP


def cells(axes: Axes) -> dict[tuple[float, float], str]:
    """What is written where."""
    return {(float(text.get_position()[0]), float(text.get_position()[1])): text.get_text() for text in axes.texts}


def test_values_stand_in_their_cells() -> None:
    """x is the column, y the row, and the mesh holds the same values."""
    axes = draw_heat_map(HEAT_MAP).axes[0]
    assert cells(axes) == {(0.5, 0.5): "0.25", (4.0, 0.5): "2.0", (0.5, 4.0): "2.0", (4.0, 4.0): "16"}
    assert np.asarray(axes.collections[0].get_array()).tolist() == [[0.25, 2.0], [2.0, 16.0]]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("width (m)", "height (m)", "areas")


def test_colours_reach_as_far_to_both_sides_of_the_centre() -> None:
    """The largest value is 16 times the centre, so the scale begins at a sixteenth; its name stands beside it."""
    figure = draw_heat_map(HEAT_MAP)
    mesh = figure.axes[0].collections[0]
    assert mesh.norm.vmin == pytest.approx(1 / 16)
    assert mesh.norm.vmax == pytest.approx(16)
    assert figure.axes[-1].get_ylabel() == "area (m²)"


def test_without_a_centre_colours_reach_from_least_to_most() -> None:
    """And values of 1 are nothing special."""
    mesh = draw_heat_map(replace(HEAT_MAP, centre=None)).axes[0].collections[0]
    assert (mesh.norm.vmin, mesh.norm.vmax) == (0.25, 16.0)


@pytest.mark.parametrize("centre", [None, 1.0])
def test_text_stands_out_from_its_cell(centre: float | None) -> None:
    """Between ink and cell the contrast is 4.5 to 1 or more, as WCAG 2.1 asks of small text."""
    values = tuple(10.0 ** (exponent / 8.0) for exponent in range(-16, 17))
    panel = replace(HEAT_MAP.panels[0], x=tuple(map(float, range(len(values)))), y=(0.0,), values=(values,))
    axes = draw_heat_map(replace(HEAT_MAP, centre=centre, panels=(replace(panel, boundary=None),))).axes[0]
    for text in axes.texts:
        box = text.get_bbox_patch()
        assert box is not None
        light, dark = sorted((luminance(to_rgba(text.get_color())), luminance(box.get_facecolor())), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5


def luminance(colour: tuple[float, ...]) -> float:
    """Relative luminance of an sRGB colour. *Source*: WCAG 2.1."""
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_boundary_lies_beneath_the_numbers() -> None:
    """The line crosses cells, and the numbers stay readable."""
    axes = draw_heat_map(HEAT_MAP).axes[0]
    (line,) = axes.lines
    assert tuple(np.asarray(line.get_xdata())) == (0.5, 2.0)
    assert line.get_zorder() < min(text.get_zorder() for text in axes.texts)


def test_a_panel_may_have_no_boundary() -> None:
    """Then there is no line."""
    panels = (replace(HEAT_MAP.panels[0], boundary=None),)
    assert list(draw_heat_map(replace(HEAT_MAP, panels=panels)).axes[0].lines) == []
