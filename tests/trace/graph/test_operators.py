"""Graphs of operators as they ran."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from perfsuite.records.engine_trace import NOTHING, EngineTrace, EventKind, Events, TraceRecorder
from perfsuite.records.events import Node
from perfsuite.testing.engine_traces import EXTRA_NS, OPERATOR_NS, engine_trace, event, node, small_trace, tensor
from perfsuite.trace.graph.operators import choose_graph, node_times, operator_graph
from perfsuite.trace.statistics.operator_runs import operator_runs


def part(evaluation: int, node: int, thread: int, start_ns: int, end_ns: int, counters: int = NOTHING) -> Events:
    """Return an operator on a thread, in an evaluation that begins every 1000 ns."""
    at = evaluation * 1000
    place = {"graph": 0, "node": node, "evaluation": evaluation, "thread": thread, "counters": counters}
    return event(EventKind.OPERATOR, at + start_ns, at + end_ns, **place)


def test_an_operator_lasts_from_the_first_entry_to_the_last_return() -> None:
    events = []
    for number, end in enumerate((70, 80, 310)):
        events += [part(number, 0, 0, 0, 10), part(number, 1, 0, 10, 40), part(number, 1, 1, 15, end)]
    times, wall_ns = node_times(operator_runs(engine_trace(events)), 0)
    assert (times[1].time_ns, times[1].start_ns, times[1].n_evaluations, times[0].time_ns) == (70.0, 10.0, 3, 10.0)
    assert wall_ns == 80.0
    counters = np.asarray([[1, 5], [2, 5], [10, 5], [20, NOTHING]], dtype=np.int64)
    events = [part(number, 0, thread, 0, 5, 2 * number + thread) for number in (0, 1) for thread in (0, 1)]
    trace = engine_trace(events, counter_names=("cycles", "faults"), counters=counters)
    times, _ = node_times(operator_runs(trace), 0)
    assert times[0].counters == (16.5, 10.0)


def graph(n_tokens: int) -> tuple[Node, ...]:
    return (node("MUL_MAT", tensor("y", (8, n_tokens)), tensor("w.weight", (8, 8)), tensor("x", (8, n_tokens))),)


def trace(*evaluated: int) -> EngineTrace:
    """Return graphs of 64, 1, 1 and 1 tokens, of which the given ones were evaluated on two threads."""
    events = [
        event(EventKind.OPERATOR, at * 10, at * 10 + 5, graph=number, node=0, evaluation=at, thread=thread)
        for at, number in enumerate(evaluated)
        for thread in (0, 1)
    ]
    return engine_trace(events, graphs=(graph(64), graph(1), graph(1), graph(1)))


@pytest.mark.parametrize(("wanted", "expected"), [(None, 2), ("decode", 2), ("prefill", 0), ("3", 3)], ids=repr)
def test_the_most_often_evaluated_one_is_taken(wanted: str | int | None, expected: int) -> None:
    chosen = trace(0, 0, 0, 1, 2, 2)
    assert choose_graph(chosen, operator_runs(chosen), wanted) == expected


#: Of `small_trace`: thread 1 begins 100 ns behind thread 0 and takes longer, but has hardly a part in the last one.
TIME_NS = OPERATOR_NS + EXTRA_NS + 100


def test_operators_have_what_was_measured() -> None:
    graph = operator_graph(small_trace(n_tokens=3))
    query = graph.operators[1]
    assert (query.name, query.role, query.layer, query.op) == ("Qcur-0", "Qcur", 0, "MUL_MAT")
    assert (query.type, query.shape, query.backend) == ("f32", "64x64 to 64", "CPU")
    assert (query.time_ns, query.start_ns, query.n_evaluations) == (TIME_NS, 15_000, 3)
    assert (query.n_bytes, query.bytes_per_s) == (64 * 64 * 4 + 2 * 256, pytest.approx(query.n_bytes / TIME_NS * 1e9))
    assert (graph.operators[0].op, graph.number, graph.n_tokens, graph.n_evaluations) == ("RMS_NORM+MUL", 0, 1, 3)


def test_the_critical_path_is_against_the_serial_sum() -> None:
    graph = operator_graph(small_trace())
    assert graph.critical in ((0, 1, 3), (0, 2, 3))
    assert (graph.serial_ns, graph.critical_ns) == (3 * TIME_NS + OPERATOR_NS, 2 * TIME_NS + OPERATOR_NS)
    assert graph.gain_ratio == pytest.approx((3 * TIME_NS + OPERATOR_NS) / (2 * TIME_NS + OPERATOR_NS))
    assert graph.wall_ns == 55_000
    (siblings,) = graph.siblings
    assert (siblings.shared, siblings.members, siblings.saving_ns) == (0, (1, 2), TIME_NS)
    assert list(graph.edges) == [(0, 1), (0, 2), (1, 3), (2, 3)]


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
