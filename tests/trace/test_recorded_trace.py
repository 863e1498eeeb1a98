"""From the suite's own recorders to a trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from perfsuite.records.engine_trace import NOTHING, EngineTrace, EventFlag, EventKind, Events, TraceRecorder
from perfsuite.records.events import (
    EngineRecord,
    Evaluation,
    ExpertChoice,
    Node,
    Phase,
    Span,
    Split,
    Tensor,
    ThreadStart,
)
from perfsuite.records.trace_levels import TraceLevel
from perfsuite.trace.operators import timed_operators
from perfsuite.trace.recorded_trace import recorded_trace
from perfsuite.trace.samples import traced_phases


def tensor(name: str, root: int = 0x10) -> Tensor:
    """Return a row of numbers."""
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
    """Return a phase."""
    return Span(phase=phase, repetition=0, token=0, n_tokens=n_tokens, start_ns=start_ns, end_ns=end_ns)


def record(**fields: Any) -> EngineRecord:
    """Return two iterations of the graph, the first without the entry hook."""
    usual: dict[str, Any] = {
        "engine_version": "llama 1",
        "spans": (
            span(Phase.PREFILL, 100, 200, 4),
            span(Phase.COPY, 210, 220),
            span(Phase.DECODE, 300, 400),
        ),
        "graphs": (GRAPH,),
        "evaluations": (
            Evaluation(graph=0, launch_ns=110, first_start_ns=None, ends_ns=(130, 180)),
            Evaluation(graph=0, launch_ns=310, first_start_ns=320, ends_ns=(340, 390)),
        ),
        "thread_starts": (),
        "n_dropped": 0,
    }
    return EngineRecord(**{**usual, **fields})


def traced(made: EngineRecord, recorder: TraceRecorder = TraceRecorder.CALLBACK) -> EngineTrace:
    """Return what a record becomes."""
    return recorded_trace(made, recorder)


def rows(events: Events, *fields: str) -> list[tuple[int, ...]]:
    """Return some fields of each event."""
    return [tuple(row) for row in events[list(fields)].tolist()]


def test_phases_and_tokens_are_the_drivers_spans() -> None:
    """Each span is a phase, and those of prefill and decode are calls of llama_decode too."""
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


def test_a_graph_lasts_until_its_last_operator() -> None:
    """The preload recorder sees no end of a graph but those of its operators on each thread."""
    evaluations = tuple(replace(each, ends_ns=()) for each in record().evaluations)
    starts = (start(0, 0, 120, 150), start(3, 0, 151, 170), start(0, 1, 121, 150), start(3, 1, 151, 175))
    trace = traced(record(evaluations=evaluations, thread_starts=starts), TraceRecorder.PRELOAD)
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
    """A fused pair is one node, and a view is none."""
    (graph,) = traced(record()).graphs
    assert [(node.op, node.fused_op, node.tensor.name) for node in graph] == [
        ("RMS_NORM", "MUL", "attn_norm-0"),
        ("MUL_MAT", None, "Qcur-0"),
    ]
    assert [source.name for source in graph[0].sources] == ["embd", "blk.0.attn_norm.weight"]
    assert graph[1].tensor.root == 0x30


def test_a_tensor_without_elements_is_no_node() -> None:
    """What computes nothing has a time and is no operator; the next one begins at its end."""
    empty = replace(GRAPH[0], tensor=replace(tensor("rows"), ne=(64, 0, 1, 1)))
    evaluation = Evaluation(graph=0, launch_ns=110, first_start_ns=None, ends_ns=(130, 135, 180))
    trace = traced(record(graphs=((*GRAPH[:3], empty, GRAPH[3]),), evaluations=(evaluation,)))
    assert [node.tensor.name for node in trace.graphs[0]] == ["attn_norm-0", "Qcur-0"]
    assert rows(trace.of(EventKind.OPERATOR), "start_ns", "end_ns", "node") == [(110, 130, 0), (135, 180, 1)]
    assert trace.problems == ()


def start(node: int, thread: int, start_ns: int, end_ns: int | None = None) -> ThreadStart:
    """Return an operator on a thread."""
    return ThreadStart(graph=0, node=node, thread=thread, start_ns=start_ns, end_ns=end_ns)


def test_with_the_preload_recorder_each_thread_has_its_operators() -> None:
    """Operators last from their start to their end on every thread, named by the node that they compute."""
    starts = (start(0, 0, 112, 125), start(3, 0, 131, 170), start(0, 1, 113, 120), start(3, 1, 132, 180))
    trace = traced(record(thread_starts=starts), TraceRecorder.PRELOAD)
    assert TraceLevel.ENDS in trace.levels
    assert [each.tid for each in trace.threads] == [0, 1]
    assert rows(trace.of(EventKind.OPERATOR), "start_ns", "end_ns", "thread", "node", "evaluation") == [
        (112, 125, 0, 0, 0),
        (113, 120, 1, 0, 0),
        (131, 170, 0, 1, 0),
        (132, 180, 1, 1, 0),
    ]
    assert trace.of(EventKind.OPERATOR)["flags"].tolist() == [EventFlag.FUSED, EventFlag.FUSED, 0, 0]


def test_an_end_that_was_not_seen_is_derived() -> None:
    """It is the thread's next start within the graph, or the last end on thread 0."""
    starts = (start(0, 1, 113), start(3, 1, 132), start(0, 1, 321))
    trace = traced(record(thread_starts=starts), TraceRecorder.PRELOAD)
    operators = trace.of(EventKind.OPERATOR)
    assert rows(operators, "start_ns", "end_ns", "evaluation") == [(113, 132, 0), (132, 180, 0), (321, 390, 1)]
    assert (operators["flags"] & EventFlag.END_DERIVED).all()
    assert TraceLevel.ENDS not in trace.levels


def test_splits_are_graphs_on_their_backends() -> None:
    """A part of a graph that was given to a backend is a GRAPH from the call to its return."""
    splits = (
        Split(graph=0, backend="CPU", launch_ns=110, return_ns=120),
        Split(graph=0, backend="OpenCL", launch_ns=130, return_ns=140),
    )
    trace = traced(record(evaluations=(), splits=splits))
    assert trace.backends == ("CPU", "OpenCL")
    assert rows(trace.of(EventKind.GRAPH), "start_ns", "end_ns", "value", "evaluation", "iteration") == [
        (110, 120, 0, 0, 0),
        (130, 140, 1, 1, 0),
    ]


def test_chosen_experts_are_rows() -> None:
    """Each token's choice is a row an expert, in the iteration that it was read in."""
    choice = ExpertChoice(ns=150, layer=3, first_token=2, n_experts=60, ids=((5, 1), (7, 0)))
    trace = traced(record(experts=(choice,)))
    assert rows(trace.experts, "iteration", "layer", "token", "slot", "expert") == [
        (0, 3, 2, 0, 5),
        (0, 3, 2, 1, 1),
        (0, 3, 3, 0, 7),
        (0, 3, 3, 1, 0),
    ]
    assert trace.n_experts == 60
    assert TraceLevel.EXPERTS in trace.levels


def test_what_was_dropped_is_told() -> None:
    """Lost events, and evaluations without an end for each operator, are problems."""
    short = (Evaluation(graph=0, launch_ns=110, first_start_ns=None, ends_ns=(130,)),)
    trace = traced(record(n_dropped=5, evaluations=short))
    assert trace.n_lost == 5
    assert trace.problems == (
        "5 events found the recorder's ring full",
        "1 of 1 evaluations have not one end for each operator",
    )


def test_a_record_of_spans_alone_is_a_trace_of_tokens() -> None:
    """Without a recorder of operators there are phases and tokens."""
    trace = traced(record(graphs=(), evaluations=()))
    assert trace.levels == TraceLevel.TOKEN
    assert set(trace.events["kind"].tolist()) == {EventKind.PHASE, EventKind.TOKEN}


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
