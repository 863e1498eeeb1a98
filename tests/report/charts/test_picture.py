"""Charts as files of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from importlib import resources
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from perfsuite.cli.plot import PICTURES
from perfsuite.records.chart import (
    Axis,
    BarLayer,
    BarPanel,
    Chart,
    HeatMap,
    HeatPanel,
    Line,
    LineRole,
    PointGroup,
    Scale,
    StackedBars,
    XYChart,
    XYPanel,
)
from perfsuite.report.charts.picture import picture_svg
from perfsuite.report.charts.svg import ink_on, luminance, shade, significant
from tests.conftest import Golden

XY = XYChart(
    title="Twice is more",
    note="of <three>",
    n_columns=2,
    panels=tuple(
        XYPanel(
            title=title,
            x_axis=Axis(label="size (tokens)", scale=Scale.LOG2),
            y_axis=Axis(label="time (ms)", least=0.0),
            lines=(
                Line(label="once", x=(64.0, 128.0, 256.0), y=(1.0, 2.0, 4.0), low_y=(0.5, 1.5, 3.0)),
                Line(label="roof", x=(64.0, 256.0), y=(8.0, 8.0), role=LineRole.CURVE),
                Line(label="mean", x=(64.0, 256.0), y=(3.5, 3.5), role=LineRole.REFERENCE),
                Line(label="cache", x=(64.0, 256.0), y=(5.0, 6.0), role=LineRole.FAINT),
            ),
            groups=(
                PointGroup(label="old", kind="original", x=(64.0, 66.0), y=(2.0, 2.1), texts=("a", "b")),
                PointGroup(label="old", kind="quantised", x=(80.0,), y=(1.0,)),
                PointGroup(label="knee", x=(80.0,), y=(1.0,), is_ring=True),
            ),
        )
        for title in ("left", "right", "below")
    ),
)
HEAT = HeatMap(
    title="Large at the corner",
    note="of four",
    x_axis=Axis(label="width (m)"),
    y_axis=Axis(label="height (m)"),
    colour_axis=Axis(label="area (m²)"),
    panels=(
        HeatPanel(
            title="areas",
            x=(1.0, 4.0),
            y=(1.0, 4.0),
            values=((1.0, 4.0), (4.0, 16.0)),
            boundary=Line(label="equal", x=(1.0, 4.0), y=(4.0, 1.0)),
        ),
    ),
)
BARS = StackedBars(
    title="Half of it",
    note="of two",
    x_label="size (tokens)",
    height_label="operations",
    categories=("small", "large"),
    panels=(
        BarPanel(
            title="parts", layers=(BarLayer(label="a", heights=(1.0, 300.0)), BarLayer(label="b", heights=(3.0, 100.0)))
        ),
    ),
)


@pytest.mark.parametrize("chart", [XY, HEAT, BARS])
def test_each_kind_of_chart_is_drawn(chart: Chart, golden: Golden) -> None:
    golden(f"charts/{type(chart).__name__.lower()}.svg", picture_svg(chart))


def test_colours_and_dashes_are_those_of_the_page() -> None:
    page = resources.files("perfsuite.report.page").joinpath("templates", "style.css").read_text("utf-8")
    rules = re.findall(r"^(?:svg )?(\.[kd]\d) \{ (.*); \}$", page, re.MULTILINE)
    assert len(rules) == 11
    assert [rule for rule in rules if f"{rule[0]}{{{rule[1].replace(': ', ':')}}}" not in picture_svg(BARS)] == []


class _Text(NamedTuple):
    words: str
    left: float
    right: float
    y: float


def texts(svg: str) -> Iterator[_Text]:
    """Where words lie within the picture, in a wide font."""
    yield from _within(ElementTree.fromstring(svg), 0.0, 0.0, 0.0)


def _within(element: ElementTree.Element, x: float, y: float, width: float) -> Iterator[_Text]:
    """What is in an element whose corner and width are given."""
    for each in element:
        tag, at = each.tag.rpartition("}")[2], each.attrib.get("x", "0")
        left = x + (float(at[:-1]) / 100.0 * width if at.endswith("%") else float(at))
        top = y + float(each.attrib.get("y", "0"))
        if tag == "svg":
            yield from _within(each, left, top, float(each.attrib.get("width", width)))
        elif tag == "text":
            words, look = "".join(each.itertext()), each.attrib.get("class", "").split()
            wide = len(words) * (9.0 if "title" in look else 6.4)
            left -= wide if "end" in look else wide / 2.0 if "middle" in look else 0.0
            yield _Text(words, left, left + wide, top)


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_has_its_words_inside(name: str) -> None:
    """Title, note, panels' titles, axes' names, numbers and the legend; no name of a panel is cut."""
    chart = PICTURES[name][1]()
    svg = picture_svg(chart)
    found = list(texts(svg))
    root = ElementTree.fromstring(svg)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert [each for each in found if each.left < 0.0 or each.right > width or not 0.0 < each.y < height] == []
    words = " ".join(each.words for each in found).replace("\N{NO-BREAK SPACE}", " ")
    assert all(each in words for each in (chart.title, chart.note, *(panel.title for panel in chart.panels)))


def test_labels_have_a_look_and_kinds_a_filling() -> None:
    """One label is one colour and shape in all panels and in the legend; shapes tell labels apart without it."""
    groups = tuple(
        PointGroup(label=f"g{n}", kind=kind, x=(1.0 + n,), y=(5.0,)) for n in range(9) for kind in ("a", "b")
    )
    panel = replace(XY.panels[0], lines=(), groups=groups)
    svg = picture_svg(replace(XY, panels=(panel, panel)))
    uses = [each.attrib for each in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}use")]
    looks = [(each["href"], each["class"]) for each in uses]
    assert looks[:18] == looks[18:36] == looks[36:]
    assert len(set(looks)) == 18
    assert looks[0][0] == looks[1][0] != looks[2][0]


def test_names_of_points_cover_neither_marks_nor_each_other() -> None:
    crowd = PointGroup(label="d", x=(100.0, 100.0, 101.0), y=(3.0, 3.05, 3.1), texts=("attn_out", "ffn_up", "ffn_down"))
    panel = replace(XY.panels[0], lines=(), groups=(crowd,), x_axis=Axis(label="x", least=50.0, most=150.0))
    found = [each for each in texts(picture_svg(replace(XY, panels=(panel,)))) if each.words in crowd.texts]
    assert len(found) == 3
    for place, one in enumerate(found):
        for other in found[place + 1 :]:
            assert abs(one.y - other.y) >= 11.0 or one.right < other.left or other.right < one.left


def test_words_stand_out_from_their_cells_and_larger_values_are_darker() -> None:
    """The contrast is 4.5 to 1 or more, as WCAG 2.1 asks of small text."""
    colours = [shade(step / 32.0) for step in range(33)]
    grey = [luminance(colour) for colour in colours]
    assert grey == sorted(grey, reverse=True)
    for colour in colours:
        low, high = sorted((luminance(colour), luminance(ink_on(colour))))
        assert (high + 0.05) / (low + 0.05) >= 4.5


@pytest.mark.parametrize(
    ("value", "n_digits", "written"),
    [(0.0314, 2, "0.031"), (0.5, 2, "0.50"), (1.04, 2, "1.0"), (22.9, 2, "23"), (3144.4, 3, "3144"), (1.7, 3, "1.70")],
)
def test_numbers_have_so_many_digits(value: float, n_digits: int, written: str) -> None:
    """Never a power of ten, and whole parts are whole."""
    assert significant(value, n_digits) == written
