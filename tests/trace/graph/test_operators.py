"""Graphs of operators as they ran."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.records.engine_trace import EventKind, TraceRecorder
from perfsuite.testing.engine_traces import EXTRA_NS, OPERATOR_NS, engine_trace, event, small_trace
from perfsuite.testing.large_trace import large_trace
from perfsuite.trace.graph.operators import operator_graph

#: Of `small_trace`: thread 1 begins 100 ns behind thread 0 and takes longer, but has hardly a part in the last one.
TIME_NS = OPERATOR_NS + EXTRA_NS + 100


def test_operators_have_what_was_measured() -> None:
    """Name, role, layer, shape, time, bytes and bandwidth of a product on the CPU."""
    graph = operator_graph(small_trace(n_tokens=3))
    query = graph.operators[1]
    assert (query.name, query.role, query.layer, query.op) == ("Qcur-0", "Qcur", 0, "MUL_MAT")
    assert (query.type, query.shape, query.backend) == ("f32", "64x64 to 64", "CPU")
    assert (query.time_ns, query.start_ns, query.n_evaluations) == (TIME_NS, 15_000, 3)
    assert query.n_bytes == 64 * 64 * 4 + 2 * 256
    assert query.bytes_per_s == pytest.approx(query.n_bytes / TIME_NS * 1e9)
    assert graph.operators[0].op == "RMS_NORM+MUL"
    assert (graph.number, graph.n_tokens, graph.n_evaluations) == (0, 1, 3)


def test_the_critical_path_is_against_the_serial_sum() -> None:
    """Norm, one of the two products and the sum: three of four operators."""
    graph = operator_graph(small_trace())
    assert graph.critical in ((0, 1, 3), (0, 2, 3))
    assert graph.serial_ns == 3 * TIME_NS + OPERATOR_NS
    assert graph.critical_ns == 2 * TIME_NS + OPERATOR_NS
    assert graph.gain_ratio == pytest.approx((3 * TIME_NS + OPERATOR_NS) / (2 * TIME_NS + OPERATOR_NS))
    assert graph.wall_ns == 55_000


def test_products_that_share_an_input_are_siblings() -> None:
    """Query and key read the norm and run one after the other; side by side they save one of them."""
    (siblings,) = operator_graph(small_trace()).siblings
    assert (siblings.shared, siblings.members, siblings.saving_ns) == (0, (1, 2), TIME_NS)


def test_networkx_has_the_graph() -> None:
    """Nodes carry their operators, edges are those of the sources."""
    graph = operator_graph(small_trace())
    assert list(graph.digraph.edges) == list(graph.edges) == [(0, 1), (0, 2), (1, 3), (2, 3)]
    assert graph.digraph.nodes[3]["operator"].name == "sum-0"


def test_a_decode_step_has_siblings_in_every_layer() -> None:
    """Q, K and V, and gate and up, of each of 30 layers; all operators but the first have an edge to them."""
    graph = operator_graph(large_trace(3000))
    names = [[graph.operators[each].role for each in group.members] for group in graph.siblings]
    assert names == [["Qcur", "Kcur", "Vcur"], ["ffn_gate", "ffn_up"]] * 30
    assert {target for _, target in graph.edges} == set(range(1, len(graph.operators)))
    assert graph.critical[0] == 0
    assert graph.critical[-1] == len(graph.operators) - 1


def test_a_graph_that_was_not_timed_has_its_structure() -> None:
    """Edges are there; times, gain and siblings are not."""
    graph = operator_graph(engine_trace([]))
    assert len(graph.edges) == 4
    assert graph.operators[0].time_ns is None
    assert graph.operators[0].bytes_per_s is None
    assert (graph.gain_ratio, graph.wall_ns, graph.siblings) == (None, None, ())


def test_a_device_works_where_its_commands_run() -> None:
    """Of an OpenCL trace the kernels' time counts, not that of their enqueue on the host."""
    place = {"graph": 0, "node": 1, "iteration": 0, "evaluation": 0}
    events = [
        event(EventKind.OPERATOR, 0, 50, thread=0, **place),
        event(EventKind.KERNEL, 100, 300, value=0, **place),
        event(EventKind.KERNEL, 300, 1100, value=0, **place),
    ]
    trace = replace(engine_trace(events, kernels=("k",), backends=("GPUOpenCL",)), recorder=TraceRecorder.OPENCL)
    assert operator_graph(trace).operators[1].time_ns == 1000.0


@pytest.mark.parametrize(("number", "backend"), [(0, "CPU"), (-1, "CPU"), (3, None)])
def test_the_backend_is_that_of_the_graph(number: int, backend: str | None) -> None:
    """By the graph's own events; where they do not know their graph, by those of its evaluations."""
    place = {"graph": 0, "node": 1, "evaluation": 0}
    events = [
        event(EventKind.GRAPH, 0, 10, value=0, graph=number, evaluation=0 if number < 1 else 9),
        event(EventKind.OPERATOR, 1, 5, thread=0, **place),
    ]
    assert operator_graph(engine_trace(events)).operators[1].backend == backend
