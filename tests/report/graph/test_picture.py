"""Pictures of graphs."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.report.graph.picture import write_graph_picture
from perfsuite.report.graph.view import GraphOptions, graph_view
from perfsuite.testing.engine_traces import engine_trace, node, small_trace, tensor
from perfsuite.testing.large_trace import large_trace


def texts(path: Path) -> list[str]:
    """Return the texts of an SVG, in the order in which they are drawn."""
    root = ElementTree.parse(path).getroot()
    return [
        re.sub(r"\s+", " ", "".join(each.itertext())).strip() for each in root.iter("{http://www.w3.org/2000/svg}text")
    ]


def test_an_svg_has_its_texts_as_text(tmp_path: Path) -> None:
    """Title, what the graph could gain, the scale, and each box's name, shape and time can be searched for."""
    path = tmp_path / "graph.svg"
    write_graph_picture([graph_view(large_trace(2000))], path)
    shown = texts(path)
    for expected in ("model.gguf", "2: Qcur-0", "MUL_MAT q8_0 576x576 to 576", "28 layers alike"):
        assert expected in shown
    assert any(each.startswith("colour: share of the time") for each in shown)
    assert any("critical path" in each and "times as fast side by side" in each for each in shown)


def test_the_same_graph_is_the_same_svg(tmp_path: Path) -> None:
    """Nothing of the day or of the run is in it."""
    contents = []
    for name in ("a.svg", "b.svg"):
        write_graph_picture([graph_view(small_trace())], tmp_path / name)
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]


def test_two_graphs_stand_side_by_side(tmp_path: Path) -> None:
    """One picture is as wide as both, with one scale."""
    one, two = (graph_view(small_trace(), GraphOptions(title=title)) for title in ("first", "second"))
    write_graph_picture([one], tmp_path / "one.svg")
    write_graph_picture([one, two], tmp_path / "two.svg")
    widths = [float(re.search(r'width="([\d.]+)pt"', (tmp_path / f"{n}.svg").read_text())[1]) for n in ("one", "two")]  # type: ignore[index]
    assert widths[1] > 1.8 * widths[0]
    shown = texts(tmp_path / "two.svg")
    assert {"first", "second"} <= set(shown)
    assert sum(each.startswith("colour:") for each in shown) == 1


def test_a_picture_may_be_a_png(tmp_path: Path) -> None:
    """The suffix says so."""
    write_graph_picture([graph_view(small_trace())], tmp_path / "graph.png")
    assert (tmp_path / "graph.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["$x^2$", "a<b>&c", "µ_{", "\\frac", "%s"])
def test_a_name_is_drawn_as_it_is(name: str, tmp_path: Path) -> None:
    """Neither a formula nor markup is made of it."""
    write_graph_picture([graph_view(engine_trace([], graphs=((node("ADD", tensor(name)),),)))], tmp_path / "g.svg")
    assert f"0: {name}" in texts(tmp_path / "g.svg")


def test_graphs_of_two_metrics_have_no_common_scale(tmp_path: Path) -> None:
    """It is said, and nothing is written."""
    views = [graph_view(small_trace(), GraphOptions(metric=metric)) for metric in ("time", "bandwidth")]
    with pytest.raises(PerfsuiteError, match="metrics are time, bandwidth, expected one for all"):
        write_graph_picture(views, tmp_path / "g.svg")
    assert not list(tmp_path.iterdir())


def test_another_format_is_refused(tmp_path: Path) -> None:
    """The message says which there are."""
    with pytest.raises(PerfsuiteError, match=r"suffix is '.gif', accepted are .png and .svg"):
        write_graph_picture([graph_view(small_trace())], tmp_path / "g.gif")


def test_a_graph_that_is_too_large_for_a_png_is_told(tmp_path: Path) -> None:
    """A chain of a thousand operators is too tall; an SVG is not."""
    graph = [node("ADD", tensor("x0"))]
    for number in range(1, 1000):
        graph.append(node("ADD", tensor(f"x{number}"), graph[-1].tensor))
    view = graph_view(engine_trace([], graphs=(tuple(graph),)))
    with pytest.raises(PerfsuiteError, match="too large for a PNG; write an SVG, or show fewer layers"):
        write_graph_picture([view], tmp_path / "g.png")
