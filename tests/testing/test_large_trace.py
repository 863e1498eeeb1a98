"""The builder of long traces."""

from __future__ import annotations

import numpy as np

from perfsuite.records.engine_trace import EventKind
from perfsuite.testing.large_trace import decode_graph, large_trace


def test_a_large_trace_has_as_many_events_as_asked_for() -> None:
    """At least so many, and less than a token's more."""
    trace = large_trace(5000)
    assert 5000 <= trace.events.size < 5000 + 3 * len(decode_graph())


def test_events_of_a_large_trace_are_in_order_and_within_their_tables() -> None:
    """Events are sorted, operators lie within their graph, each has counters of its own."""
    trace = large_trace(5000)
    assert (np.diff(trace.events["start_ns"]) >= 0).all()
    operators, graphs = trace.of(EventKind.OPERATOR), trace.of(EventKind.GRAPH)
    around = graphs[operators["evaluation"]]
    assert (operators["start_ns"] > around["start_ns"]).all()
    assert (operators["end_ns"] < around["end_ns"]).all()
    assert operators["node"].max() == len(trace.graphs[0]) - 1
    assert sorted(operators["counters"].tolist()) == list(range(len(trace.counters)))


def test_a_large_trace_is_the_same_for_the_same_seed() -> None:
    """Tests that build on it can be run again."""
    assert large_trace(2000).events.tobytes() == large_trace(2000).events.tobytes()
    assert large_trace(2000, seed=2).events.tobytes() != large_trace(2000).events.tobytes()


def test_a_decode_graph_is_connected_by_its_tensors() -> None:
    """Every operator but the first reads what another has made."""
    made: set[str] = set()
    for node in decode_graph(2):
        assert not made or made & {source.name for source in node.sources}
        made.add(node.tensor.name)
