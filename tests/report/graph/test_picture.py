"""Pictures of graphs."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.report.charts.svg import luminance
from perfsuite.report.graph.picture import (
    BOX_HEIGHT,
    BOX_WIDTH,
    GraphPanel,
    colour_of,
    dot_text,
    graph_svg,
    largest_value,
)
from perfsuite.report.graph.view import graph_view
from perfsuite.testing.engine_traces import engine_trace, node, small_trace, tensor
from perfsuite.testing.large_trace import large_trace

#: A quoted string ends at the first quote that no backslash escapes.
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)


def labels(text: str) -> list[str]:
    shown = []
    for match in re.finditer(r"label=" + _QUOTED.pattern, text, re.DOTALL):
        shown.append(re.sub(r"\\(.)", lambda escape: {"n": "\n"}.get(escape[1], escape[1]), match[1]))
    return shown


def test_boxes_and_edges_are_there() -> None:
    view = graph_view(small_trace())
    text = dot_text([view])
    head, *boxes = labels(text)
    assert head.startswith("model.gguf\ngraph 0, decode, 4 operators on CPU")
    assert boxes[1].splitlines()[:2] == ["1: Qcur-0", "MUL_MAT f32 64x64 to 64"]
    assert re.findall(r"g0_n(\d) -> g0_n(\d)", text) == [("0", "1"), ("0", "2"), ("1", "3"), ("2", "3")]
    assert len(re.findall(r"-> g0_n\d \[.*penwidth", text)) == 2


@pytest.mark.parametrize("name", ['a"b', "a\\", 'a\\"]; evil [', "a\\nb", 'x" -> y', "<b>&amp;</b>", "{a|b}", "//*"])
def test_no_name_ends_its_quotes(name: str) -> None:
    """Without the quoted strings, nothing of a tensor's name is left, and the label is the name."""
    view = graph_view(engine_trace([], graphs=((node("ADD", tensor(name)),),)))
    text = dot_text([view])
    assert labels(text)[1].splitlines()[0] == f"0: {name}"
    plain = dot_text([graph_view(engine_trace([], graphs=((node("ADD", tensor("a")),),)))])
    assert _QUOTED.sub('""', text) == _QUOTED.sub('""', plain)


@pytest.mark.parametrize("metric", ["time", "bandwidth", "cycles"])
def test_more_is_darker(metric: str) -> None:
    """In grey as well, from 0 to the largest value that is drawn; what is not known is white."""
    view = graph_view(large_trace(2000), metric=metric)
    most = largest_value([view])
    shades = [luminance(colour_of(most * step / 10, view, most)) for step in range(11)]
    assert all(one > other for one, other in pairwise(shades))
    assert colour_of(None, view, most) == "#ffffff"


def test_boxes_and_edges_do_not_touch() -> None:
    panel = GraphPanel.of(graph_view(large_trace(2000)))
    middles = [panel.middle_of(number) for number in range(len(panel.view.nodes))]
    for number, (x, y) in enumerate(middles):
        assert BOX_WIDTH / 2 <= x <= panel.width - BOX_WIDTH / 2
        assert BOX_HEIGHT / 2 <= y <= panel.height - BOX_HEIGHT / 2
        assert all(abs(x - u) > BOX_WIDTH or abs(y - v) > BOX_HEIGHT for u, v in middles[:number])
    for edge in panel.view.edges:
        (x0, y0), (x1, y1) = map(panel.middle_of, edge)
        points = panel.route(edge)
        assert points[0][1] == pytest.approx(y0 + BOX_HEIGHT / 2)
        assert points[-1][1] == pytest.approx(y1 - BOX_HEIGHT / 2)
        assert abs(points[0][0] - x0) < BOX_WIDTH / 2
        assert abs(points[-1][0] - x1) < BOX_WIDTH / 2
        assert all(0 <= x <= panel.width for x, _ in points)
        for (x0, y0), (x1, y1) in pairwise(points):
            for step in range(1, 40):
                x, y = x0 + (x1 - x0) * step / 40, y0 + (y1 - y0) * step / 40
                assert not any(
                    abs(x - u) < BOX_WIDTH / 2 - 1e-6 and abs(y - v) < BOX_HEIGHT / 2 - 1e-6 for u, v in middles
                )


def texts(svg: str) -> list[str]:
    return ["".join(each.itertext()) for each in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_title_gain_scale_and_boxes_are_words_in_the_picture() -> None:
    shown = texts(graph_svg([graph_view(large_trace(2000))]))
    for expected in ("model.gguf", "2: Qcur-0", "MUL_MAT q8_0 576x576 to 576", "28 layers alike"):
        assert expected in shown
    assert shown[0].startswith("colour: share of the time of all operators (%), 0 to 0.2")
    assert "times as fast side by side" in " ".join(shown)


def test_two_graphs_stand_side_by_side_under_one_scale() -> None:
    one, two = (graph_view(small_trace(), title=title) for title in ("first", "second"))
    widths = [float(ElementTree.fromstring(graph_svg(views)).attrib["width"]) for views in ([one], [one, two])]
    assert widths[1] > 1.8 * widths[0]
    shown = texts(graph_svg([one, two]))
    assert {"first", "second"} <= set(shown)
    assert sum(each.startswith("colour:") for each in shown) == 1
    other = graph_view(small_trace(), metric="bandwidth")
    with pytest.raises(PerfsuiteError, match="metrics are time, bandwidth, expected one for all"):
        graph_svg([one, other])


@pytest.mark.parametrize("name", ["$x^2$", "a<b>&c", "µ_{", "\\frac", "%s"])
def test_a_name_is_drawn_as_it_is(name: str) -> None:
    assert f"0: {name}" in texts(graph_svg([graph_view(engine_trace([], graphs=((node("ADD", tensor(name)),),)))]))
