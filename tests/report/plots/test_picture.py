"""Charts as files."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D

from perfsuite.cli.plot import PICTURES
from perfsuite.records.chart import Axis, Chart, Line, PointGroup, ScatterChart, ScatterPanel
from perfsuite.report.plots.picture import (
    draw,
    draw_heat_map,
    draw_scatter,
    picture_bytes,
    write_picture,
)

from .conftest import CHARTS, HEAT_MAP, LINES


def cells(axes: Axes) -> dict[tuple[float, float], str]:
    return {(float(text.get_position()[0]), float(text.get_position()[1])): text.get_text() for text in axes.texts}


def test_values_stand_in_their_cells() -> None:
    """x is the column, y the row; the boundary, if any, lies beneath the numbers."""
    axes = draw(HEAT_MAP).axes[0]
    assert cells(axes) == {(0.5, 0.5): "0.25", (4.0, 0.5): "2.0", (0.5, 4.0): "2.0", (4.0, 4.0): "16"}
    assert np.asarray(axes.collections[0].get_array()).tolist() == [[0.25, 2.0], [2.0, 16.0]]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("width (m)", "height (m)", "areas")
    (line,) = axes.lines
    assert tuple(np.asarray(line.get_xdata())) == (0.5, 2.0)
    assert line.get_zorder() < min(text.get_zorder() for text in axes.texts)
    panels = (replace(HEAT_MAP.panels[0], boundary=None),)
    assert list(draw_heat_map(replace(HEAT_MAP, panels=panels)).axes[0].lines) == []


def test_colours_reach_as_far_to_both_sides_of_the_centre() -> None:
    """The scale begins at a sixteenth where the largest is 16 times the centre; without a centre at the least."""
    figure = draw_heat_map(HEAT_MAP)
    mesh = figure.axes[0].collections[0]
    assert mesh.norm.vmin == pytest.approx(1 / 16)
    assert mesh.norm.vmax == pytest.approx(16)
    assert figure.axes[-1].get_ylabel() == "area (m²)"
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
    (found,) = (line for line in axes.lines if line.get_label() == label)
    return found


def test_labels_have_a_mark_and_kinds_a_filling() -> None:
    """One label is one colour and mark in all panels; what is not of the first kind is white within."""
    left, right = draw_scatter(CHART).axes
    original, quantised, new = (drawn(left, label) for label in ("old, original", "old, quantised", "new, original"))
    assert (original.get_color(), original.get_marker()) == (quantised.get_color(), quantised.get_marker())
    assert original.get_color() != new.get_color()
    assert original.get_marker() != new.get_marker()
    assert [line.get_markerfacecolor() for line in (quantised, original)] == ["white", original.get_color()]
    assert drawn(right, "new, original").get_color() == new.get_color()


def test_lines_go_through_their_points_and_look_alike_in_all_panels() -> None:
    """Under its title and its axes' names; axes are divided as they say, and one legend tells each label."""
    figure = draw(LINES)
    for axes, panel in zip(figure.axes, LINES.panels, strict=True):
        assert axes.get_title() == panel.title
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("size (tokens)", "time (ms)")
        for drawn, line in zip(axes.lines, panel.lines, strict=True):
            assert tuple(np.asarray(drawn.get_xdata())) == line.x
            assert tuple(np.asarray(drawn.get_ydata())) == line.y
    axes = figure.axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")
    assert axes.xaxis.get_major_formatter()(128.0, 0) == "128"
    low, high = axes.get_ylim()
    assert low == 0.0
    assert 8.0 < high < 9.0
    looks = [
        [(line.get_color(), line.get_linestyle(), line.get_marker()) for line in axes.lines] for axes in figure.axes
    ]
    assert looks[0] == looks[1] == looks[2]
    assert len(set(looks[0])) == 3
    assert len({colour for colour, _, _ in looks[0]}) == 3
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["once", "twice", "mean"]


SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: bytes) -> str:
    return "\n".join("".join(text.itertext()) for text in ElementTree.fromstring(svg).iter(f"{SVG}text"))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if at else ()) for at, name in enumerate(PICTURES)]
)
def test_every_picture_is_drawn_as_png(name: str, tmp_path: Path) -> None:
    """A PNG of 1200 pixels in width, as high as the figure is."""
    chart = PICTURES[name].chart()
    write_picture(chart, tmp_path / "picture.png")
    content = (tmp_path / "picture.png").read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert content.endswith(b"IEND\xaeB`\x82")
    width, height = struct.unpack(">II", content[16:24])
    assert width == 1200
    assert height == int(120 * draw(chart).get_figheight())
    assert 400 <= height <= 1100


@pytest.mark.long_but_first
@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_is_drawn_as_svg(name: str, tmp_path: Path) -> None:
    """Well-formed, with the title, the note and the name of every panel as text."""
    chart = PICTURES[name].chart()
    write_picture(chart, tmp_path / "picture.svg")
    svg = (tmp_path / "picture.svg").read_bytes()
    assert ElementTree.fromstring(svg).tag == f"{SVG}svg"
    words = texts(svg)
    joined = " ".join(words.replace("\N{NO-BREAK SPACE}", " ").split())
    assert chart.title in joined
    assert chart.note in joined
    assert all(panel.title in words for panel in chart.panels)


@pytest.mark.long_but_first
@pytest.mark.parametrize("name", PICTURES)
def test_no_text_leaves_the_picture(name: str) -> None:
    """Title, note, titles of panels, labels of axes and the legend lie within the figure."""
    figure = draw(PICTURES[name].chart())
    figure.draw_without_rendering()
    axes = [*figure.axes]
    labels = [text for each in axes for text in (each.title, each.xaxis.label, each.yaxis.label)]
    legend = [text for each in figure.legends for text in each.get_texts()]
    for text in (*figure.texts, *labels, *legend):
        if text.get_text():
            box = text.get_window_extent()
            assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1, text.get_text()
            assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1, text.get_text()


@pytest.mark.long_but_first
@pytest.mark.parametrize("chart", [*CHARTS, CHART])
def test_the_same_chart_is_the_same_svg(chart: Chart) -> None:
    """Nothing of the day, of chance, or of the user's own settings is in it."""
    first = picture_bytes(chart, "svg")
    with matplotlib.rc_context({"font.size": 30.0, "svg.hashsalt": None, "axes.facecolor": "red"}):
        assert picture_bytes(chart, "svg") == first
    assert b"<dc:date>" not in first
