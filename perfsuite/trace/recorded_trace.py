"""Turns what the suite's own recorders saw into a trace."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import (
    EVENT_DTYPE,
    EXPERT_DTYPE,
    NOTHING,
    EngineTrace,
    EventFlag,
    EventKind,
    Events,
    Experts,
    TracedThread,
    TraceRecorder,
)
from perfsuite.records.events import EngineRecord, ExpertChoice
from perfsuite.records.trace_levels import TraceLevel
from perfsuite.trace.recorded_nodes import RecordedGraph, recorded_graph
from perfsuite.trace.samples import misaligned_evaluations
from perfsuite.trace.span_events import SpanEvents, span_events

#: What the callback and preload recorders hear of.
CPU_BACKEND = "CPU"

_Times = npt.NDArray[np.int64]


def recorded_trace(
    record: EngineRecord, recorder: TraceRecorder, *, pid: int | None = None, command: tuple[str, ...] = ()
) -> EngineTrace:
    """Return what a record tells.

    With the callback recorder an operator lasts on thread 0 from the end of the one before it (the first: from its
    start, where the entry hook saw it, or from the launch of the graph) to its own end, as `samples` counts it. With
    the preload recorder it lasts on each thread from its start to the thread's arrival at the barrier behind it.
    """
    spans = span_events(record)
    graphs = [recorded_graph(graph) for graph in record.graphs]
    operators = _thread_operators(record, graphs) if record.thread_starts else _main_operators(record, graphs)
    computed, backends = _evaluation_events(record, operators) if record.evaluations else split_events(record)
    for events in (operators, computed):
        events["iteration"] = spans.iteration_of(events["start_ns"])
    events = np.concatenate([spans.events, computed, operators])
    n_threads = 1 + max((each.thread for each in record.thread_starts), default=0)
    return EngineTrace(
        recorder=recorder,
        levels=_levels(record),
        pid=pid,
        command=command,
        engine_version=record.engine_version,
        events=events[np.argsort(events["start_ns"], kind="stable")],
        threads=tuple(TracedThread(tid=number, name=f"thread {number}") for number in range(n_threads)),
        graphs=tuple(graph.nodes for graph in graphs),
        backends=backends,
        kernels=(),
        phases=spans.phases,
        counter_names=(),
        counters=np.empty((0, 0), np.int64),
        experts=_experts(record, spans),
        n_experts=max((each.n_experts for each in record.experts if each.n_experts is not None), default=None),
        n_lost=record.n_dropped,
        probe_costs=(),
        cut=None,
        problems=tuple(_problems(record)),
    )


def _levels(record: EngineRecord) -> TraceLevel:
    levels = TraceLevel.TOKEN
    if record.evaluations or record.splits:
        levels |= TraceLevel.GRAPH | TraceLevel.STRUCTURE
    if record.evaluations:
        levels |= TraceLevel.OPERATOR
    if any(each.end_ns is not None for each in record.thread_starts):
        levels |= TraceLevel.ENDS
    return levels | TraceLevel.EXPERTS if record.experts else levels


def _evaluation_events(record: EngineRecord, operators: Events) -> tuple[Events, tuple[str, ...]]:
    """Return one GRAPH for each evaluation, from its launch to the last end on any thread, and the backends."""
    evaluations = record.evaluations
    events = _empty(EventKind.GRAPH, len(evaluations))
    events["value"], events["thread"] = 0, 0
    events["evaluation"] = np.arange(len(evaluations))
    events["graph"] = [each.graph for each in evaluations]
    events["start_ns"] = [each.launch_ns for each in evaluations]
    ends_ns = np.array([each.ends_ns[-1] if each.ends_ns else NOTHING for each in evaluations], np.int64)
    known = operators[operators["evaluation"] != NOTHING]
    np.maximum.at(ends_ns, known["evaluation"], known["end_ns"])
    events["end_ns"] = ends_ns
    return events, (CPU_BACKEND,)


def split_events(record: EngineRecord) -> tuple[Events, tuple[str, ...]]:
    """Return one GRAPH for each split, from the call to its return, and the backends."""
    backends = tuple(dict.fromkeys(each.backend for each in record.splits))
    events = _empty(EventKind.GRAPH, len(record.splits))
    events["thread"] = 0
    events["evaluation"] = np.arange(len(record.splits))
    events["value"] = [backends.index(each.backend) for each in record.splits]
    events["graph"] = [each.graph for each in record.splits]
    events["start_ns"] = [each.launch_ns for each in record.splits]
    events["end_ns"] = [each.return_ns for each in record.splits]
    return events, backends


def _main_operators(record: EngineRecord, graphs: list[RecordedGraph]) -> Events:
    """Return the operators of thread 0, by their ends."""
    parts = [np.empty(0, EVENT_DTYPE)]
    for number, evaluation in enumerate(record.evaluations):
        places = np.array(list(graphs[evaluation.graph].places.values()), np.int64)
        ends_ns = np.array(evaluation.ends_ns[: places.size], np.int64)
        entered_ns = evaluation.first_start_ns
        made = _empty(EventKind.OPERATOR, ends_ns.size)
        made["thread"], made["evaluation"], made["graph"] = 0, number, evaluation.graph
        made["node"] = places[: ends_ns.size]
        made["start_ns"] = [evaluation.launch_ns if entered_ns is None else entered_ns, *ends_ns[:-1]][: ends_ns.size]
        made["end_ns"], made["flags"] = ends_ns, EventFlag.START_DERIVED
        if entered_ns is not None:
            made["flags"][:1] = 0
        _mark_fused(made, graphs[evaluation.graph])
        parts.append(made[made["node"] != NOTHING])
    return np.concatenate(parts)


def _thread_operators(record: EngineRecord, graphs: list[RecordedGraph]) -> Events:
    """Return the operators of all threads, by their starts."""
    starts = sorted(record.thread_starts, key=lambda each: (each.thread, each.start_ns))
    launches_ns = np.array([each.launch_ns for each in record.evaluations], np.int64)
    made = _empty(EventKind.OPERATOR, len(starts))
    for field in ("start_ns", "thread", "graph"):
        made[field] = [getattr(each, field) for each in starts]
    made["node"] = [graphs[each.graph].places.get(each.node, NOTHING) for each in starts]
    made["evaluation"] = np.searchsorted(launches_ns, made["start_ns"], side="right") - 1
    seen_ns = np.array([NOTHING if each.end_ns is None else each.end_ns for each in starts], np.int64)
    made["end_ns"] = np.where(seen_ns == NOTHING, _derived_ns(made, record), seen_ns)
    made["flags"] = np.where(seen_ns == NOTHING, EventFlag.END_DERIVED, 0)
    made["flags"] |= np.where(made["end_ns"] == NOTHING, EventFlag.CUT, 0).astype(np.uint8)
    for number, graph in enumerate(graphs):
        own = made["graph"] == number
        part = made[own]
        _mark_fused(part, graph)
        made[own] = part
    return made


def _derived_ns(operators: Events, record: EngineRecord) -> _Times:
    """Return where each thread's next operator of the evaluation begins, or its last operator ended on thread 0."""
    last_ns = np.array([each.ends_ns[-1] if each.ends_ns else NOTHING for each in record.evaluations] or [NOTHING])
    ends_ns: _Times = last_ns[operators["evaluation"]]
    same = np.ones(max(operators.size - 1, 0), np.bool_)
    for field in ("thread", "evaluation"):
        same &= operators[field][1:] == operators[field][:-1]
    follows = np.append(same, False)[: operators.size]
    ends_ns = np.where(follows, np.append(operators["start_ns"][1:], NOTHING)[: operators.size], ends_ns)
    is_known = (operators["evaluation"] != NOTHING) & (ends_ns >= operators["start_ns"])
    return np.where(is_known, ends_ns, NOTHING)


def _mark_fused(operators: Events, graph: RecordedGraph) -> None:
    fused = np.array([*(node.fused_op is not None for node in graph.nodes), False])
    operators["flags"] |= np.where(fused[operators["node"]], EventFlag.FUSED, 0).astype(np.uint8)


def _experts(record: EngineRecord, spans: SpanEvents) -> Experts:
    parts = [np.empty(0, EXPERT_DTYPE), *(_chosen(each) for each in record.experts)]
    experts = np.concatenate(parts)
    experts["iteration"] = spans.iteration_of(experts["ns"])
    return experts[np.argsort(experts["ns"], kind="stable")]


def _chosen(choice: ExpertChoice) -> Experts:
    ids = np.array(choice.ids, np.int32).reshape(len(choice.ids), -1)
    made = np.empty(ids.size, EXPERT_DTYPE)
    made["ns"], made["layer"] = choice.ns, choice.layer
    made["token"] = np.repeat(choice.first_token + np.arange(ids.shape[0]), ids.shape[1])
    made["slot"] = np.tile(np.arange(ids.shape[1]), ids.shape[0])
    made["expert"] = ids.reshape(-1)
    return made


def _problems(record: EngineRecord) -> Iterator[str]:
    if record.n_dropped:
        yield f"{record.n_dropped} events found the recorder's ring full"
    if not record.thread_starts and (n_misaligned := misaligned_evaluations(record)):
        yield f"{n_misaligned} of {len(record.evaluations)} evaluations have not one end for each operator"


def _empty(kind: EventKind, size: int) -> Events:
    made = np.full(size, NOTHING, EVENT_DTYPE)
    made["kind"], made["flags"] = kind, 0
    return made
