"""Turns what the suite's own recorders saw into a trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_columns import Evaluations, Rows, evaluations_of, experts_of, splits_of, thread_operators
from perfsuite.records.engine_trace import (
    NOTHING,
    EngineTrace,
    EventFlag,
    EventKind,
    Events,
    Times,
    TracedThread,
    TraceRecorder,
    new_events,
)
from perfsuite.records.events import GRAPH_PHASES, EngineRecord, Span
from perfsuite.records.trace_levels import TraceLevel
from perfsuite.trace.operators import RecordedGraph, recorded_graph
from perfsuite.trace.samples import misaligned_evaluations


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpanEvents:
    """The spans of a record."""

    phases: tuple[str, ...]
    #: PHASE and TOKEN events, both on thread 0.
    events: Events
    #: The spans that are iterations, in the order of time.
    iterations: tuple[Span, ...]

    def iteration_of(self, ns: Times) -> npt.NDArray[np.int64]:
        """Return the iteration that each moment falls into, NOTHING where there is none."""
        starts_ns = np.array([span.start_ns for span in self.iterations], np.int64)
        ends_ns = np.array([*(span.end_ns for span in self.iterations), NOTHING], np.int64)
        before = np.searchsorted(starts_ns, ns, side="right") - 1
        return np.where((before >= 0) & (ns <= ends_ns[before]), before, NOTHING)


def span_events(record: EngineRecord) -> SpanEvents:
    """Turn the spans of a record into PHASE events, and those that evaluate a graph into TOKEN events too."""
    phases = tuple(dict.fromkeys(span.phase.value for span in record.spans))
    evaluating = (span for span in record.spans if span.phase in GRAPH_PHASES)
    iterations = tuple(sorted(evaluating, key=lambda span: span.start_ns))
    number = {id(span): place for place, span in enumerate(iterations)}
    of_phases = _events(EventKind.PHASE, record.spans)
    of_phases["value"] = [phases.index(span.phase.value) for span in record.spans]
    of_phases["iteration"] = [number.get(id(span), NOTHING) for span in record.spans]
    tokens = _events(EventKind.TOKEN, iterations)
    tokens["value"] = [span.n_tokens for span in iterations]
    tokens["iteration"] = np.arange(len(iterations))
    return SpanEvents(phases=phases, events=np.concatenate([of_phases, tokens]), iterations=iterations)


def _events(kind: EventKind, spans: tuple[Span, ...]) -> Events:
    times = {name: [getattr(span, name) for span in spans] for name in ("start_ns", "end_ns")}
    return new_events(kind, len(spans), thread=0, **times)


#: What the callback and preload recorders hear of.
CPU_BACKEND = "CPU"


def recorded_trace(
    record: EngineRecord, recorder: TraceRecorder, *, pid: int | None = None, command: tuple[str, ...] = ()
) -> EngineTrace:
    """Return what a record shows.

    With the callback recorder an operator lasts on thread 0 from the end of the one before it (the first: from its
    start, where the entry hook saw it, or from the launch of the graph) to its own end, as `samples` counts it. With
    the preload recorder it lasts on each thread from its start to the thread's arrival at the barrier behind it.
    """
    spans = span_events(record)
    graphs = [recorded_graph(graph) for graph in record.graphs]
    evaluations, of_threads = evaluations_of(record), thread_operators(record)
    operators = (
        _thread_operators(of_threads, evaluations, graphs) if of_threads.size else _main_operators(evaluations, graphs)
    )
    computed, backends = _evaluation_events(evaluations, operators) if evaluations else split_events(record)
    for events in (operators, computed):
        events["iteration"] = spans.iteration_of(events["start_ns"])
    events = np.concatenate([spans.events, computed, operators])
    experts, n_experts = experts_of(record)
    experts["iteration"] = spans.iteration_of(experts["ns"])
    n_threads = 1 + int(of_threads["thread"].max(initial=0))
    return EngineTrace(
        recorder=recorder,
        levels=_levels(record, evaluations, of_threads),
        pid=pid,
        command=command,
        engine_version=record.engine_version,
        events=events[np.argsort(events["start_ns"], kind="stable")],
        threads=tuple(TracedThread(tid=number, name=f"thread {number}") for number in range(n_threads)),
        graphs=tuple(graph.nodes for graph in graphs),
        backends=backends,
        phases=spans.phases,
        experts=experts,
        n_experts=n_experts,
        n_lost=record.n_dropped,
        problems=tuple(_problems(record)),
    )


def _levels(record: EngineRecord, evaluations: Evaluations, of_threads: Rows) -> TraceLevel:
    levels = TraceLevel.TOKEN
    if evaluations or record.splits:
        levels |= TraceLevel.GRAPH | TraceLevel.STRUCTURE
    if evaluations:
        levels |= TraceLevel.OPERATOR
    if (of_threads["end_ns"] != NOTHING).any():
        levels |= TraceLevel.ENDS
    return levels | TraceLevel.EXPERTS if record.expert_choices else levels


def _evaluation_events(evaluations: Evaluations, operators: Events) -> tuple[Events, tuple[str, ...]]:
    """Return one GRAPH for each evaluation, from its launch to the last end on any thread, and the backends."""
    ends_ns = evaluations.last_ns
    known = operators[operators["evaluation"] != NOTHING]
    np.maximum.at(ends_ns, known["evaluation"], known["end_ns"])
    times = {"start_ns": evaluations.launch_ns, "end_ns": ends_ns}
    number = np.arange(len(evaluations))
    where = {"thread": 0, "evaluation": number, "graph": evaluations.graph}
    return new_events(EventKind.GRAPH, number.size, value=0, **where, **times), (CPU_BACKEND,)


def split_events(record: EngineRecord) -> tuple[Events, tuple[str, ...]]:
    """Return one GRAPH for each split, from the call to its return, and the backends."""
    splits = splits_of(record)
    used = list(dict.fromkeys(splits["backend"].tolist()))
    times = {"start_ns": splits["launch_ns"], "end_ns": splits["return_ns"]}
    backends = [used.index(each) for each in splits["backend"].tolist()]
    number = np.arange(splits.size)
    where = {"thread": 0, "evaluation": number, "graph": splits["graph"]}
    events = new_events(EventKind.GRAPH, number.size, value=backends, **where, **times)
    return events, tuple(record.backends[each] for each in used)


def _main_operators(evaluations: Evaluations, graphs: list[RecordedGraph]) -> Events:
    number = np.repeat(np.arange(len(evaluations)), evaluations.n_ends)
    places = {"thread": 0, "evaluation": number, "graph": evaluations.graph[number]}
    times = {"start_ns": evaluations.starts_ns, "end_ns": evaluations.ends_ns}
    made = new_events(EventKind.OPERATOR, number.size, **places, **times)
    place = np.arange(made.size) - evaluations.bounds[number]
    is_entry = (place == 0) & (evaluations.first_start_ns[number] != NOTHING)
    made["flags"] = np.where(is_entry, 0, EventFlag.START_DERIVED)
    timed = [np.array([*graph.places.values(), NOTHING], np.int64) for graph in graphs]
    for each, nodes in enumerate(timed):
        own = made["graph"] == each
        made["node"][own] = nodes[np.minimum(place[own], nodes.size - 1)]
    _mark_fused(made, graphs)
    known: Events = made[made["node"] != NOTHING]
    return known


def _thread_operators(rows: Rows, evaluations: Evaluations, graphs: list[RecordedGraph]) -> Events:
    taken = {field: rows[field] for field in ("start_ns", "thread", "graph")}
    made = new_events(EventKind.OPERATOR, rows.size, **taken)
    for number, graph in enumerate(graphs):
        known = np.full(1 + max([int(rows["node"].max()), *graph.places]), NOTHING, np.int64)
        known[list(graph.places)] = list(graph.places.values())
        own = rows["graph"] == number
        made["node"][own] = known[rows["node"][own]]
    made["evaluation"] = np.searchsorted(evaluations.launch_ns, made["start_ns"], side="right") - 1
    is_seen = rows["end_ns"] != NOTHING
    made["end_ns"] = np.where(is_seen, rows["end_ns"], _derived_ns(made, evaluations))
    made["flags"] = np.where(is_seen, 0, EventFlag.END_DERIVED)
    made["flags"] |= np.where(made["end_ns"] == NOTHING, EventFlag.CUT, 0).astype(np.uint8)
    _mark_fused(made, graphs)
    return made


def _derived_ns(operators: Events, evaluations: Evaluations) -> Times:
    """Return where each thread's next operator of the evaluation begins, or its last operator ended on thread 0."""
    ends_ns: Times = np.append(evaluations.last_ns, NOTHING)[operators["evaluation"]]
    same = np.ones(max(operators.size - 1, 0), np.bool_)
    for field in ("thread", "evaluation"):
        same &= operators[field][1:] == operators[field][:-1]
    follows = np.append(same, False)[: operators.size]
    ends_ns = np.where(follows, np.append(operators["start_ns"][1:], NOTHING)[: operators.size], ends_ns)
    is_known = (operators["evaluation"] != NOTHING) & (ends_ns >= operators["start_ns"])
    return np.where(is_known, ends_ns, NOTHING)


def _mark_fused(operators: Events, graphs: list[RecordedGraph]) -> None:
    """Flag the operators whose node is computed together with another; of those without a node none is."""
    is_fused = [np.array([*(node.fused_op is not None for node in graph.nodes), False]) for graph in graphs]
    for number, fused in enumerate(is_fused):
        own = np.flatnonzero(operators["graph"] == number)
        operators["flags"][own[fused[operators["node"][own]]]] |= np.uint8(EventFlag.FUSED)


def _problems(record: EngineRecord) -> Iterator[str]:
    if record.n_dropped:
        yield f"{record.n_dropped} events found the recorder's ring full"
    if not record.thread_events and (n_misaligned := misaligned_evaluations(record)):
        yield f"{n_misaligned} of {len(evaluations_of(record))} evaluations have not one end for each operator"
