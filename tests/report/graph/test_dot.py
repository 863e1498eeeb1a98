"""Graphs in Graphviz's language."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.report.graph.dot import dot_text, write_dot
from perfsuite.report.graph.view import GraphOptions, graph_view
from perfsuite.testing.engine_traces import engine_trace, node, small_trace, tensor
from perfsuite.testing.large_trace import large_trace

#: A quoted string ends at the first quote that no backslash escapes.
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)


def labels(text: str) -> list[str]:
    """Return the labels as Graphviz shows them."""
    shown = []
    for match in re.finditer(r"label=" + _QUOTED.pattern, text, re.DOTALL):
        shown.append(re.sub(r"\\(.)", lambda escape: {"n": "\n"}.get(escape[1], escape[1]), match[1]))
    return shown


def test_boxes_and_edges_are_there() -> None:
    """A node for each box with name, operation, shape and time; an edge for each edge; the critical path is thick."""
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


def test_colours_have_ink_that_can_be_read() -> None:
    """Dark boxes are written on in white, pale ones and those without a value in black."""
    text = dot_text([graph_view(large_trace(2000), GraphOptions(metric="bandwidth"))])
    pairs = set(re.findall(r'fillcolor="(#\w{6})", fontcolor="(\w+)"', text))
    assert ("#ffffff", "black") in {(colour.lower(), ink) for colour, ink in pairs}
    assert {ink for _, ink in pairs} == {"black", "white"}


def test_graphs_stand_side_by_side(tmp_path: Path) -> None:
    """Each is a cluster of its own nodes in one file."""
    view = graph_view(small_trace())
    write_dot([view, view], tmp_path / "graphs.dot")
    text = (tmp_path / "graphs.dot").read_text("utf-8")
    assert re.findall(r"subgraph (\w+)", text) == ["cluster_0", "cluster_1"]
    assert set(re.findall(r"(g\d)_n\d -> (g\d)", text)) == {("g0", "g0"), ("g1", "g1")}
    assert text.count("{") == text.count("}") == 3
    with pytest.raises(PerfsuiteError, match=rf"^{tmp_path}: cannot be written"):
        write_dot([graph_view(small_trace())], tmp_path)
