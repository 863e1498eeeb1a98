"""Which graph of a trace is looked at."""

from __future__ import annotations

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.records.engine_trace import EngineTrace, EventKind
from perfsuite.records.events import Node
from perfsuite.testing.engine_traces import engine_trace, event, node, tensor
from perfsuite.trace.graph.choice import choose_graph
from perfsuite.trace.statistics.operator_runs import operator_runs


def graph(n_tokens: int) -> tuple[Node, ...]:
    """Return one product for so many tokens."""
    return (node("MUL_MAT", tensor("y", (8, n_tokens)), tensor("w.weight", (8, 8)), tensor("x", (8, n_tokens))),)


def trace(*evaluated: int) -> EngineTrace:
    """Return graphs of 64, 1, 1 and 1 tokens, of which the given ones were evaluated on two threads."""
    events = [
        event(EventKind.OPERATOR, at * 10, at * 10 + 5, graph=number, node=0, evaluation=at, thread=thread)
        for at, number in enumerate(evaluated)
        for thread in (0, 1)
    ]
    return engine_trace(events, graphs=(graph(64), graph(1), graph(1), graph(1)))


@pytest.mark.parametrize(("wanted", "expected"), [(None, 2), ("decode", 2), ("prefill", 0), (1, 1), ("1", 1), ("3", 3)])
def test_the_most_often_evaluated_one_is_taken(wanted: str | int | None, expected: int) -> None:
    """Of the decode graphs the second was evaluated twice, the prefill more often than any; numbers are free."""
    chosen = trace(0, 0, 0, 1, 2, 2)
    assert choose_graph(chosen, operator_runs(chosen), wanted) == expected


def test_without_a_decode_any_graph_does() -> None:
    """Where only a prefill was evaluated, that is the default."""
    chosen = trace(0)
    assert choose_graph(chosen, operator_runs(chosen)) == 0


def test_graphs_without_operators_count_by_their_own_events() -> None:
    """At graph level alone the graphs' events say how often each was evaluated."""
    events = [event(EventKind.GRAPH, at, at + 1, graph=number, value=0) for at, number in enumerate((1, 3, 3))]
    chosen = engine_trace(events, graphs=(graph(64), graph(1), graph(1), graph(1)))
    assert choose_graph(chosen, operator_runs(chosen)) == 3


@pytest.mark.parametrize("wanted", ["7", 4, "encode"])
def test_a_graph_that_there_is_not_is_told(wanted: str | int) -> None:
    """The message lists those that there are, with what they are for."""
    chosen = trace(0, 1)
    with pytest.raises(PerfsuiteError) as told:
        choose_graph(chosen, operator_runs(chosen), wanted)
    assert str(told.value) == (
        f"graph {wanted!r}: the trace has 0 (prefill, 1 operator, 1 evaluation), 1 (decode, 1 operator, 1 evaluation), "
        "2 (decode, 1 operator, 0 evaluations), 3 (decode, 1 operator, 0 evaluations); "
        "accepted are decode, prefill, or a number"
    )


def test_a_trace_without_graphs_says_what_it_lacks() -> None:
    """Operators have to be recorded; no graph was asked for, so none is named."""
    empty = engine_trace([], graphs=())
    with pytest.raises(PerfsuiteError, match=r"^graph: the trace has none; record it with the level 'operator'"):
        choose_graph(empty, operator_runs(empty))
