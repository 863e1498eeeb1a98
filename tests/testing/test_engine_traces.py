"""The builders of small traces."""

from __future__ import annotations

import numpy as np

from perfsuite.records.engine_columns import evaluations_of
from perfsuite.records.engine_trace import NOTHING, EventFlag, EventKind
from perfsuite.records.events import EngineRecord
from perfsuite.testing.engine_traces import EPOCH_NS, engine_trace, evaluation, event, small_graph, small_trace, tensor


def test_evaluations_are_read_as_they_were_built() -> None:
    """Launch, entry, graph and ends are those that were asked for."""
    events = evaluation(5, 6, 9, first_start_ns=4) + evaluation(18, 25, graph=1)
    found = evaluations_of(EngineRecord(engine_version="", spans=(), graphs=((),) * 2, n_dropped=0, events=events))
    assert (found.graph.tolist(), found.launch_ns.tolist(), found.first_start_ns.tolist()) == ([0, 1], [5, 18], [4, -1])
    assert (found.ends_ns.tolist(), found.n_ends.tolist()) == ([6, 9, 25], [2, 1])


def test_an_event_holds_nothing_where_nothing_is_said() -> None:
    """Fields that are left out hold NOTHING, and flags none; a trace takes events in any order."""
    made = event(EventKind.GRAPH, 10, thread=1)[0]
    assert (made["start_ns"], made["end_ns"], made["thread"]) == (EPOCH_NS + 10, NOTHING, 1)
    assert (made["node"], made["counters"], made["cpu"], made["flags"]) == (NOTHING, NOTHING, NOTHING, 0)
    trace = engine_trace([event(EventKind.TOKEN, 20, 30), event(EventKind.TOKEN, 10, 15)])
    assert trace.events["start_ns"].tolist() == [EPOCH_NS + 10, EPOCH_NS + 20]


def test_a_tensor_is_contiguous_and_has_an_address_by_its_name() -> None:
    """Two tensors of one name are the same memory, those of different names are not."""
    assert tensor("a", (3, 5)).nb == (4, 12, 60, 60)
    assert tensor("a") == tensor("a")
    assert tensor("a").root != tensor("b").root


def test_a_small_trace_has_each_operator_on_each_thread_of_each_token() -> None:
    """Every node of the graph is there once for a token and thread, and ends before the next begins."""
    trace = small_trace(3)
    operators = trace.of(EventKind.OPERATOR)
    places = {tuple(each) for each in operators[["iteration", "thread", "node"]].tolist()}
    assert len(places) == operators.size == 3 * 2 * len(small_graph())
    for thread in (0, 1):
        own = operators[operators["thread"] == thread]
        assert (own["start_ns"][1:] >= own["end_ns"][:-1]).all()
    assert (operators["flags"][operators["node"] == 0] == EventFlag.FUSED).all()


def test_what_a_small_trace_refers_to_is_there() -> None:
    """Threads, graphs and backends of events lie within the tables."""
    trace = small_trace()
    assert trace.events["thread"].max() < len(trace.threads)
    assert trace.events["graph"].max() < len(trace.graphs)
    assert (trace.of(EventKind.GRAPH)["value"] < len(trace.backends)).all()
    assert np.isin(trace.of(EventKind.OPERATOR)["iteration"], trace.of(EventKind.TOKEN)["iteration"]).all()
