"""What is said of a graph."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.records.engine_trace import EventKind
from perfsuite.report.graph.view import graph_view
from perfsuite.report.graph.words import graph_words
from perfsuite.testing.engine_traces import engine_trace, event, node, small_graph, small_trace, tensor


def test_a_graph_is_told_in_words() -> None:
    """What it is, what it could gain, how long it lasts, and what is not drawn."""
    assert list(graph_words(graph_view(small_trace(n_tokens=3)))) == [
        "graph 0, decode, 4 operators on CPU, medians of 3 evaluations",
        "one after the other 46.3 µs, critical path 34.2 µs (74%): at most 1.35 times as fast side by side",
        "from the first entry to the last return 55.0 µs",
        "not drawn: 3 weights of 32.2 KiB, 1 other constant",
    ]


def test_a_part_of_a_call_is_called_one() -> None:
    """Where a recorder cuts graphs, or a prompt needs several, none of them is all that a call computes."""
    events = [
        event(EventKind.OPERATOR, at, at + 10, thread=0, iteration=at // 40, evaluation=at // 20, graph=0, node=0)
        for at in range(0, 120, 20)
    ]
    words = list(graph_words(graph_view(engine_trace(events))))
    assert words[1] == "a part: one of 2 graphs that a call of llama_decode computes"


def test_what_is_not_known_is_said() -> None:
    """Times and addresses that nobody recorded."""
    graph = tuple(
        replace(
            each, tensor=replace(each.tensor, root=None), sources=tuple(replace(s, root=None) for s in each.sources)
        )
        for each in small_graph()
    )
    words = list(graph_words(graph_view(engine_trace([], graphs=(graph,)))))
    assert words[0] == "graph 0, decode, 4 operators"
    assert words[1] == "times are not known"
    assert words[-1] == "edges by the tensors' names, some may be missing: the recorder did not read addresses"


def test_a_prefill_says_its_tokens() -> None:
    """A graph without a product of matrices is only a graph."""
    prefill = (node("MUL_MAT", tensor("y", (8, 64)), tensor("w.weight"), tensor("x")),)
    assert next(graph_words(graph_view(engine_trace([], graphs=(prefill,))))).startswith(
        "graph 0, prefill of 64 tokens,"
    )
    assert (
        next(graph_words(graph_view(engine_trace([], graphs=((node("ADD", tensor("y")),),))))) == "graph 0, 1 operator"
    )
