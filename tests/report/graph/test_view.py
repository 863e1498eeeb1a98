"""What a picture of a graph shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.records.engine_trace import EngineTrace
from perfsuite.report.graph.view import GraphView, graph_view, graph_words, layers_of
from perfsuite.testing.engine_traces import engine_trace, node, small_graph, small_trace, tensor
from perfsuite.testing.large_trace import large_trace


def test_a_graph_is_told_in_words() -> None:
    assert list(graph_words(graph_view(small_trace(n_tokens=3)))) == [
        "graph 0, decode, 4 operators on CPU, medians of 3 evaluations",
        "one after the other 46.3 µs, critical path 34.2 µs (74%): at most 1.35 times as fast side by side",
        "from the first entry to the last return 55.0 µs",
        "not drawn: 3 weights of 32.2 KiB, 1 other constant",
    ]
    prefill = (node("MUL_MAT", tensor("y", (8, 64)), tensor("w.weight"), tensor("x")),)
    (first, *_) = graph_words(graph_view(engine_trace([], graphs=(prefill,))))
    assert first.startswith("graph 0, a prompt of 64 tokens,")
    graph = tuple(
        replace(
            each, tensor=replace(each.tensor, root=None), sources=tuple(replace(s, root=None) for s in each.sources)
        )
        for each in small_graph()
    )
    *_, last = graph_words(graph_view(engine_trace([], graphs=(graph,))))
    assert last == "edges by the tensors' names, some may be missing: the recorder did not read addresses"


@pytest.fixture(scope="module")
def decode() -> EngineTrace:
    return large_trace(2000)


def view_of(trace: EngineTrace, layers: tuple[int, ...] | None) -> GraphView:
    return graph_view(trace, layers=layers)


def folds(view: GraphView) -> list[str]:
    return [each.lines[0] for each in view.nodes if each.is_fold]


def test_two_layers_and_the_ends_are_shown(decode: EngineTrace) -> None:
    view = graph_view(decode)
    (fold,) = (each for each in view.nodes if each.is_fold)
    assert fold.lines[:2] == ("28 layers alike", "layers 2 to 29, 476 operators")
    assert fold.is_critical
    assert view.nodes[0].lines[0] == "0: embd"
    assert [each.lines[0] for each in view.nodes[-2:]] == ["511: result_norm", "512: result_output"]
    assert len(view.nodes) == 1 + 2 * 17 + 1 + 2


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ((5,), ["5 layers alike", "24 layers alike"]),
        ((0, 29), ["28 layers alike"]),
        (None, []),
        ((), ["30 layers alike"]),
    ],
)
def test_layers_are_folded_where_they_are_not_asked_for(
    decode: EngineTrace, layers: tuple[int, ...] | None, expected: list[str]
) -> None:
    """Each stretch of layers between those that are shown is a box."""
    assert folds(view_of(decode, layers)) == expected


def test_every_operator_is_in_one_box(decode: EngineTrace) -> None:
    """Whatever is folded, none is lost or there twice; edges are the box's, and the critical path runs through all."""
    for layers in ((0, 1), (3, 7), None):
        view = view_of(decode, layers)
        assert sorted(each for box in view.nodes for each in box.members) == list(range(513))
    view = graph_view(decode)
    fold = next(number for number, each in enumerate(view.nodes) if each.is_fold)
    assert sum(origin == fold for origin, _ in view.edges) == 1
    assert all(origin != target for origin, target in view.edges)
    assert len(view.edges) == len(set(view.edges))
    assert view.critical_edges <= set(view.edges)
    assert len(view.critical_edges) == sum(each.is_critical for each in view.nodes) - 1


def test_a_stretch_of_layers_is_one_box() -> None:
    """One layer is not folded, unlike ones are reported, and what is between has the layer before."""
    view = graph_view(large_trace(2000), layers=tuple(range(29)))
    assert folds(view) == []
    graph = [*small_graph()]
    for layer in (2, 3, 4):
        op = "ADD" if layer == 4 else "MUL"
        graph.append(node(op, tensor(f"l_out-{layer}"), graph[-1].tensor))
    view = graph_view(engine_trace([], graphs=(tuple(graph),)))
    assert folds(view) == ["3 layers of 2 kinds"]
    names = ("embd", "a-0", "between", "b-1", "result_norm")
    between = tuple(node("ADD", tensor(name)) for name in names)
    found = graph_view(engine_trace([], graphs=(between,))).graph
    assert layers_of(found) == (None, 0, 0, 1, None)


def test_boxes_tell_what_is_asked_for() -> None:
    trace = large_trace(2000)
    box = graph_view(trace, metric="bandwidth").nodes[2]
    operator = graph_view(trace).graph.operators[2]
    assert box.lines[2].endswith(" GB/s")
    assert box.value == pytest.approx((operator.n_bytes or 0) / (operator.time_ns or 1))


def test_boxes_and_graphs_are_called_by_what_is_known() -> None:
    """By role and the engine's number, without control characters; a graph by its GGUF, the command or the recorder."""
    graph = (node("ROPE", tensor("Qcur-3"), tensor("x")), node("FLASH_ATTN_EXT", tensor("node_21"), tensor("Qcur-3")))
    view = graph_view(engine_trace([], graphs=(graph,)), layers=None)
    assert view.nodes[1].lines[0] == "1: flash_attn_ext-3 (node_21)"
    view = graph_view(engine_trace([], graphs=((node("ADD", tensor("a\x1b\n")),),)), title="t\x07")
    assert view.nodes[0].lines[0] == "0: a��"
    assert view.title == "t�"
    trace = small_trace()
    commands = (("llama-cli", "-m", "dir/x.gguf"), ("llama-bench", "-p"), ())
    titles = [graph_view(replace(trace, command=each)).title for each in commands]
    assert titles == ["x.gguf", "llama-bench -p", "ebpf"]
    box = graph_view(engine_trace([])).nodes[0]
    assert (box.value, box.lines[2]) == (None, "time not known")
