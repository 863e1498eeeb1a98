"""Charts as files."""

from __future__ import annotations

import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from perfsuite.cli.plot import PICTURES
from perfsuite.errors import PerfsuiteError
from perfsuite.records.chart import Axis, Chart, Line, LineChart, PointGroup, ScatterChart, ScatterPanel
from perfsuite.report.plots.formats import format_of
from perfsuite.report.plots.picture import (
    draw,
    draw_heat_map,
    draw_lines,
    draw_scatter,
    picture_bytes,
    write_picture,
)

from .conftest import BARS, CHARTS, HEAT_MAP, LINES


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


def points(line: Line2D) -> list[tuple[float, float]]:
    return list(zip(np.asarray(line.get_xdata()), np.asarray(line.get_ydata()), strict=True))


def test_points_lines_and_rings_are_where_they_belong() -> None:
    figure = draw_scatter(CHART)
    for axes, title in zip(figure.axes, ("left", "right"), strict=True):
        assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == (title, "time (s)", "accuracy")
        assert points(drawn(axes, "old, original")) == [(1.0, 0.2), (2.0, 0.6)]
        assert points(drawn(axes, "frontier")) == [(0.5, 0.1), (1.0, 0.2), (4.0, 0.9)]
        assert points(drawn(axes, "knee")) == [(2.0, 0.6)]


def test_labels_have_a_mark_and_kinds_a_filling() -> None:
    """One label is one colour and mark in all panels; what is not of the first kind is white within."""
    left, right = draw_scatter(CHART).axes
    original, quantised, new = (drawn(left, label) for label in ("old, original", "old, quantised", "new, original"))
    assert (original.get_color(), original.get_marker()) == (quantised.get_color(), quantised.get_marker())
    assert original.get_color() != new.get_color()
    assert original.get_marker() != new.get_marker()
    assert [line.get_markerfacecolor() for line in (quantised, original)] == ["white", original.get_color()]
    assert drawn(right, "new, original").get_color() == new.get_color()


def test_names_are_written_once_beside_points_and_in_the_legend() -> None:
    """A point without a text stays without; groups have their kinds, where they have one, in the legend."""
    words = [text.get_text() for text in draw_scatter(CHART).axes[0].texts if text.get_text()]
    assert sorted(words) == ["a", "b", "c"]
    (legend,) = draw_scatter(CHART).legends
    names = [text.get_text() for text in legend.get_texts()]
    assert sorted(names) == ["frontier", "knee", "new, original", "old, original", "old, quantised"]
    group = PointGroup(label="all", kind="", x=(1.0,), y=(1.0,))
    figure = draw(replace(CHART, n_columns=1, panels=(replace(PANEL, groups=(group,), lines=(), ringed=None),)))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["all"]


def test_bars_are_shares_that_stand_on_each_other_below_their_totals() -> None:
    """1 and 3 are a quarter and three quarters; totals have three digits, and layers differ in colour."""
    figure = draw(BARS)
    axes = figure.axes[0]
    boxes = [(box.get_y(), box.get_height()) for box in axes.patches if isinstance(box, Rectangle)]
    assert boxes == [(0.0, 25.0), (0.0, 75.0), (25.0, 75.0), (75.0, 25.0)]
    assert axes.get_ylabel() == "share of operations (%)"
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["small", "large"]
    assert [text.get_text() for text in axes.texts] == ["4.00", "400"]
    assert all(100.0 < text.get_position()[1] < axes.get_ylim()[1] for text in axes.texts)
    colours = [box.get_facecolor() for box in figure.axes[0].patches]
    assert colours[0] == colours[1] != colours[2] == colours[3]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]


def with_lines(lines: tuple[Line, ...]) -> LineChart:
    return replace(LINES, n_columns=1, panels=(replace(LINES.panels[0], lines=lines),))


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


@pytest.mark.parametrize(("n_points", "marker"), [(32, "o"), (33, "None")])
def test_lines_of_many_points_have_no_marks(n_points: int, marker: str) -> None:
    points = tuple(float(place) for place in range(1, n_points + 1))
    figure = draw_lines(with_lines((Line(label="a", x=points, y=points),)))
    assert figure.axes[0].lines[0].get_marker() == marker


def test_a_band_reaches_from_a_line_down_to_its_lows() -> None:
    """In the line's own colour, where it has lows; of two lines on the same points the one drawn first is the wider."""
    lines = (Line(label="a", x=(1.0, 2.0), y=(4.0, 3.0), low_y=(3.0, 1.0)), Line(label="b", x=(1.0, 2.0), y=(1.0, 1.0)))
    axes = draw_lines(with_lines(lines)).axes[0]
    (band,) = axes.collections
    corners = {(float(x), float(y)) for x, y in band.get_paths()[0].vertices}
    assert corners == {(1.0, 4.0), (2.0, 3.0), (1.0, 3.0), (2.0, 1.0)}
    assert tuple(np.asarray(band.get_facecolor())[0][:3]) == to_rgb(axes.lines[0].get_color())
    lower, upper = (Line(label=label, x=(1.0, 2.0), y=(1.0, 2.0)) for label in ("a", "b"))
    first, second = draw_lines(with_lines((lower, upper))).axes[0].lines
    assert first.get_linewidth() > second.get_linewidth()


@pytest.mark.parametrize(("name", "suffix"), [("a", "''"), ("a.pdf", "'.pdf'"), (".png", "''")])
def test_the_suffix_names_the_format_and_any_other_is_refused(name: str, suffix: str) -> None:
    assert [format_of(Path(each)) for each in ("a/b.png", "b.c.SVG")] == ["png", "svg"]
    with pytest.raises(PerfsuiteError, match=rf"^{name}: suffix is {suffix}, accepted are .png and .svg$"):
        format_of(Path(name))


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


@pytest.mark.parametrize("chart", [*CHARTS, CHART])
def test_the_same_chart_is_the_same_svg(chart: Chart) -> None:
    """Nothing of the day, of chance, or of the user's own settings is in it."""
    first = picture_bytes(chart, "svg")
    with matplotlib.rc_context({"font.size": 30.0, "svg.hashsalt": None, "axes.facecolor": "red"}):
        assert picture_bytes(chart, "svg") == first
    assert b"<dc:date>" not in first


def test_drawing_depends_on_no_process_and_changes_no_setting() -> None:
    """Names inside do not depend on the hash seed, and pyplot is never imported."""
    script = (
        "import sys; from perfsuite.cli.plot import PICTURES; "
        "from perfsuite.report.plots.picture import picture_bytes; "
        "sys.stdout.buffer.write(picture_bytes(PICTURES['life-fig6'].chart(), 'svg')); "
        "picture_bytes(PICTURES['life-fig8'].chart(), 'png'); sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=120, check=True)
    assert done.stdout == picture_bytes(PICTURES["life-fig6"].chart(), "svg")
    before = dict(matplotlib.rcParams)
    for chart in CHARTS:
        picture_bytes(chart, "png")
    assert dict(matplotlib.rcParams) == before
