"""From the suite's own recorders to a trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from perfsuite.records.engine_columns import CHOICE_DTYPE, SPLIT_DTYPE, THREAD_DTYPE
from perfsuite.records.engine_trace import NOTHING, EngineTrace, EventFlag, EventKind, Events, TraceRecorder
from perfsuite.records.events import EngineRecord, Node, Phase, Span, Tensor
from perfsuite.records.trace_levels import TraceLevel
from perfsuite.testing.engine_traces import evaluation
from perfsuite.trace.operators import timed_operators
from perfsuite.trace.recorded_trace import recorded_trace
from perfsuite.trace.samples import traced_phases


def tensor(name: str, root: int = 0x10) -> Tensor:
    return Tensor(name=name, type="f32", ne=(64, 1, 1, 1), nb=(4, 256, 256, 256), root=root)


NORM, SCALED, QUERY = tensor("norm-0"), tensor("attn_norm-0", 0x20), tensor("Qcur-0", 0x30)
#: A norm that is fused with its weight, a view, and a product.
GRAPH = (
    Node(tensor=NORM, op="RMS_NORM", timed=True, fused=False, sources=(tensor("embd"),)),
    Node(tensor=SCALED, op="MUL", timed=False, fused=True, sources=(NORM, tensor("blk.0.attn_norm.weight"))),
    Node(tensor=tensor("view"), op="VIEW", timed=False, fused=False, sources=(SCALED,)),
    Node(tensor=QUERY, op="MUL_MAT", timed=True, fused=False, sources=(tensor("blk.0.attn_q.weight"), SCALED)),
)


def span(phase: Phase, start_ns: int, end_ns: int, n_tokens: int = 1) -> Span:
    return Span(phase=phase, repetition=0, token=0, n_tokens=n_tokens, start_ns=start_ns, end_ns=end_ns)


def record(**fields: Any) -> EngineRecord:
    usual: dict[str, Any] = {
        "engine_version": "llama 1",
        "spans": (span(Phase.PREFILL, 100, 200, 4), span(Phase.COPY, 210, 220), span(Phase.DECODE, 300, 400)),
        "graphs": (GRAPH,),
        "events": evaluation(110, 130, 180) + evaluation(310, 340, 390, first_start_ns=320),
        "n_dropped": 0,
    }
    return EngineRecord(**{**usual, **fields})


def traced(made: EngineRecord, recorder: TraceRecorder = TraceRecorder.CALLBACK) -> EngineTrace:
    return recorded_trace(made, recorder)


def rows(events: Events, *fields: str) -> list[tuple[int, ...]]:
    return [tuple(row) for row in events[list(fields)].tolist()]


def test_phases_and_tokens_are_the_drivers_spans() -> None:
    trace = traced(record())
    assert trace.phases == ("prefill", "copy", "decode")
    assert rows(trace.of(EventKind.PHASE), "start_ns", "end_ns", "value", "iteration") == [
        (100, 200, 0, 0),
        (210, 220, 1, NOTHING),
        (300, 400, 2, 1),
    ]
    assert rows(trace.of(EventKind.TOKEN), "start_ns", "end_ns", "value", "iteration") == [
        (100, 200, 4, 0),
        (300, 400, 1, 1),
    ]
    launches = evaluation(110) + evaluation(310)
    trace = on_threads((0, 0, 120, 150), (3, 0, 151, 170), (0, 1, 121, 150), (3, 1, 151, 175), events=launches)
    assert rows(trace.of(EventKind.GRAPH), "start_ns", "end_ns") == [(110, 175), (310, NOTHING)]


def test_with_the_callback_recorder_an_operator_follows_the_one_before() -> None:
    """An operator begins where the one before it ended, the first at its entry or at the launch of its graph."""
    trace = traced(record())
    assert rows(trace.of(EventKind.GRAPH), "start_ns", "end_ns", "value", "graph", "evaluation", "iteration") == [
        (110, 180, 0, 0, 0, 0),
        (310, 390, 0, 0, 1, 1),
    ]
    operators = trace.of(EventKind.OPERATOR)
    assert rows(operators, "start_ns", "end_ns", "node", "evaluation", "thread") == [
        (110, 130, 0, 0, 0),
        (130, 180, 1, 0, 0),
        (320, 340, 0, 1, 0),
        (340, 390, 1, 1, 0),
    ]
    derived, fused = EventFlag.START_DERIVED, EventFlag.FUSED
    assert operators["flags"].tolist() == [derived | fused, derived, fused, derived]


def test_nodes_are_what_is_computed() -> None:
    """A fused pair is one node, a view none, nor a tensor without elements, behind which the next begins."""
    (graph,) = traced(record()).graphs
    assert [(node.op, node.fused_op, node.tensor.name) for node in graph] == [
        ("RMS_NORM", "MUL", "attn_norm-0"),
        ("MUL_MAT", None, "Qcur-0"),
    ]
    assert [source.name for source in graph[0].sources] == ["embd", "blk.0.attn_norm.weight"]
    assert graph[1].tensor.root == 0x30
    empty = replace(GRAPH[0], tensor=replace(tensor("rows"), ne=(64, 0, 1, 1)))
    trace = traced(record(graphs=((*GRAPH[:3], empty, GRAPH[3]),), events=evaluation(110, 130, 135, 180)))
    assert [node.tensor.name for node in trace.graphs[0]] == ["attn_norm-0", "Qcur-0"]
    assert rows(trace.of(EventKind.OPERATOR), "start_ns", "end_ns", "node") == [(110, 130, 0), (135, 180, 1)]
    assert trace.problems == ()


def on_threads(*operators: tuple[int, int, int, int], **fields: Any) -> EngineTrace:
    """Return the trace of operators on threads: node, thread, start, and end or 0 where it was not seen."""
    rows = [(start_ns, end_ns, 0, node, thread, 0) for node, thread, start_ns, end_ns in operators]
    return traced(record(thread_events=np.array(rows, THREAD_DTYPE).tobytes(), **fields), TraceRecorder.PRELOAD)


def test_with_the_preload_recorder_each_thread_has_its_operators() -> None:
    trace = on_threads((0, 0, 112, 125), (3, 0, 131, 170), (0, 1, 113, 120), (3, 1, 132, 180))
    assert TraceLevel.ENDS in trace.levels
    assert [each.tid for each in trace.threads] == [0, 1]
    assert rows(trace.of(EventKind.OPERATOR), "start_ns", "end_ns", "thread", "node", "evaluation") == [
        (112, 125, 0, 0, 0),
        (113, 120, 1, 0, 0),
        (131, 170, 0, 1, 0),
        (132, 180, 1, 1, 0),
    ]
    assert trace.of(EventKind.OPERATOR)["flags"].tolist() == [EventFlag.FUSED, EventFlag.FUSED, 0, 0]
    trace = on_threads((0, 1, 113, 0), (3, 1, 132, 0), (0, 1, 321, 0))
    operators = trace.of(EventKind.OPERATOR)
    assert rows(operators, "start_ns", "end_ns", "evaluation") == [(113, 132, 0), (132, 180, 0), (321, 390, 1)]
    assert (operators["flags"] & EventFlag.END_DERIVED).all()
    assert TraceLevel.ENDS not in trace.levels


def test_splits_are_graphs_on_their_backends() -> None:
    splits = np.array([(110, 120, 0, 0), (130, 140, 0, 1)], SPLIT_DTYPE).tobytes()
    trace = traced(record(events=b"", splits=splits, backends=("CPU", "OpenCL")))
    assert trace.backends == ("CPU", "OpenCL")
    assert rows(trace.of(EventKind.GRAPH), "start_ns", "end_ns", "value", "evaluation", "iteration") == [
        (110, 120, 0, 0, 0),
        (130, 140, 1, 1, 0),
    ]
    choice = np.array([(150, 0, 3, 2, 2, 60)], CHOICE_DTYPE).tobytes()
    trace = traced(record(expert_choices=choice, expert_ids=np.array([5, 1, 7, 0], "<i4").tobytes()))
    assert rows(trace.experts, "iteration", "layer", "token", "slot", "expert") == [
        (0, 3, 2, 0, 5),
        (0, 3, 2, 1, 1),
        (0, 3, 3, 0, 7),
        (0, 3, 3, 1, 0),
    ]
    assert trace.n_experts == 60
    assert TraceLevel.EXPERTS in trace.levels


def test_what_was_dropped_is_reported() -> None:
    trace = traced(record(n_dropped=5, events=evaluation(110, 130)))
    assert trace.n_lost == 5
    assert trace.problems == (
        "5 events found the recorder's ring full",
        "1 of 1 evaluations have not one end for each operator",
    )
    trace = traced(record(graphs=(), events=b""))
    assert (trace.levels, set(trace.events["kind"].tolist())) == (TraceLevel.TOKEN, {EventKind.PHASE, EventKind.TOKEN})


@pytest.mark.parametrize("phase", [Phase.PREFILL, Phase.DECODE])
def test_operators_take_the_time_that_samples_give_them(stored_record: EngineRecord, phase: Phase) -> None:
    """Of a real run, the time of each role is the very same as that of the phases' samples."""
    trace = traced(stored_record)
    operators = trace.of(EventKind.OPERATOR)
    iterations = [each for each in trace.of(EventKind.PHASE) if trace.phases[each["value"]] == phase.value]
    roles = [[each.role for each in timed_operators(graph)] for graph in stored_record.graphs]
    for around, expected in zip(iterations, traced_phases(stored_record, phase), strict=True):
        own = operators[operators["iteration"] == around["iteration"]]
        found: dict[str, int] = {}
        for each in own:
            role = roles[each["graph"]][each["node"]]
            found[role] = found.get(role, 0) + int(each["end_ns"] - each["start_ns"])
        assert found == expected.role_ns
        assert found
    assert (np.diff(trace.events["start_ns"]) >= 0).all()
