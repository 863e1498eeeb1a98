"""Turns a run on the OpenCL backend into a trace: what the host enqueued for each operator, and what the device did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import numpy.typing as npt

from perfsuite.errors import MeasurementError
from perfsuite.records.engine_columns import evaluations_of, splits_of
from perfsuite.records.engine_trace import (
    NOTHING,
    EngineTrace,
    EventKind,
    Events,
    Ints,
    TracedThread,
    TraceRecorder,
    new_events,
)
from perfsuite.records.events import EngineRecord, Span
from perfsuite.records.opencl_commands import CommandType
from perfsuite.records.trace_levels import TraceLevel
from perfsuite.trace.opencl.device_clock import AlignedTrace
from perfsuite.trace.opencl.kernel_mapping import KernelMapping
from perfsuite.trace.operators import RecordedGraph, recorded_graph, timed_operators
from perfsuite.trace.recorded_trace import SpanEvents, span_events


@dataclass(frozen=True, slots=True, kw_only=True)
class _NamedNode:
    role: str
    graph: int
    node: int


@dataclass(slots=True)
class GraphBook:
    """Collects the graphs of a run, and finds the nodes of its kernels by their operators' roles."""

    #: A record of the same workload that lists the graphs.
    shapes: EngineRecord
    #: Kernels whose operator is in none of the graphs.
    n_unplaced: int = 0
    recorded: list[RecordedGraph] = field(default_factory=list)
    _named: dict[tuple[int, ...], tuple[_NamedNode, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.recorded += map(recorded_graph, self.shapes.graphs)

    def places(self, roles: Sequence[str], span: Span) -> tuple[Ints, Ints]:
        """Return the graph and the node of each kernel of one iteration; NOTHING where it is not known.

        Kernels that follow each other in one of `roles`, which is in the order of their enqueue, are one operator's;
        `span` is the same iteration in `shapes`.
        """
        runs = [(role, len(list(kernels))) for role, kernels in groupby(roles)]
        found = _matched([role for role, _ in runs], self._nodes_of(span))
        lengths = [length for _, length in runs]
        graph, node = (np.repeat(np.array(each, np.int64), lengths) for each in found)
        self.n_unplaced += int((node == NOTHING).sum())
        return graph, node

    def _nodes_of(self, span: Span) -> tuple[_NamedNode, ...]:
        launch_ns, graph = _launches(self.shapes)
        computed = tuple(graph[(launch_ns >= span.start_ns) & (launch_ns < span.end_ns)].tolist())
        if computed not in self._named:
            self._named[computed] = self._name(computed)
        return self._named[computed]

    def _name(self, computed: Sequence[int]) -> tuple[_NamedNode, ...]:
        operators = timed_operators([node for graph in computed for node in self.shapes.graphs[graph]])
        places = [(graph, node) for graph in computed for node in self.recorded[graph].places.values()]
        return tuple(
            _NamedNode(role=operator.role, graph=graph, node=node)
            for operator, (graph, node) in zip(operators, places, strict=True)
            if node != NOTHING
        )


def _launches(shapes: EngineRecord) -> tuple[Ints, Ints]:
    if shapes.splits:
        splits = splits_of(shapes)
        return splits["launch_ns"], splits["graph"]
    evaluations = evaluations_of(shapes)
    return evaluations.launch_ns, evaluations.graph


def _matched(roles: Sequence[str], named: Sequence[_NamedNode]) -> tuple[list[int], list[int]]:
    graphs, nodes, at = [], [], 0
    for role in roles:
        place = next((place for place in range(at, len(named)) if named[place].role == role), None)
        graphs.append(NOTHING if place is None else named[place].graph)
        nodes.append(NOTHING if place is None else named[place].node)
        at = at if place is None else place + 1
    return graphs, nodes


def iterations_of(shapes: EngineRecord, spans: SpanEvents) -> tuple[Span, ...]:
    """Return the iterations of another record of the same workload, or of its first repetition as often as needed.

    Raises MeasurementError: it has other iterations.
    """
    theirs = span_events(shapes).iterations
    kinds, known = ([(span.phase, span.n_tokens) for span in each] for each in (spans.iterations, theirs))
    if not theirs or len(kinds) % len(theirs) or known != kinds[: len(theirs)]:
        raise MeasurementError(
            f"the record with the graphs has {len(theirs)} iterations, the traced run {len(kinds)}; record both of the "
            "same workload"
        )
    return theirs * (len(kinds) // len(theirs))


BACKEND = "OpenCL"


def opencl_trace(
    record: EngineRecord,
    aligned: AlignedTrace,
    mapping: KernelMapping,
    *,
    shapes: EngineRecord,
    command: tuple[str, ...] = (),
) -> EngineTrace:
    """Return what a run on the OpenCL backend shows.

    An OPERATOR is the host's part, from the enqueue of its first command to the end of the enqueue of its last; a
    KERNEL is a command while the device worked on it, on the host's clock, with the node that it computes.

    `aligned` has the commands of the same process. `shapes` is a record of the same workload that lists the graphs: the
    ``splits`` or ``groups`` recorder's.

    Raises MeasurementError: `shapes` has other iterations than `record`.
    """
    return _OpenClRun(record, aligned, mapping, shapes).trace(command)


class _OpenClRun:
    def __init__(
        self, record: EngineRecord, aligned: AlignedTrace, mapping: KernelMapping, shapes: EngineRecord
    ) -> None:
        self._record, self._aligned, self._mapping = record, aligned, mapping
        self._spans: SpanEvents = span_events(record)
        self._shape_spans = iterations_of(shapes, self._spans)
        self._book = GraphBook(shapes)
        self._commands = aligned.trace.commands
        size = self._commands.size
        self._iteration = self._spans.iteration_of(self._commands["host_start_ns"].astype(np.int64))
        self._graph, self._node = np.full(size, NOTHING, np.int64), np.full(size, NOTHING, np.int64)
        self._n_unlearnt = 0
        for iteration, span in enumerate(self._spans.iterations):
            self._place(iteration, span)

    def trace(self, command: tuple[str, ...]) -> EngineTrace:
        kernels = tuple(dict.fromkeys(self._name(each) for each in range(self._commands.size)))
        events = np.concatenate(
            [self._spans.events, self._graph_events(), self._operator_events(), self._kernel_events(kernels)]
        )
        trace = self._aligned.trace
        return EngineTrace(
            recorder=TraceRecorder.OPENCL,
            levels=TraceLevel.TOKEN | TraceLevel.GRAPH | TraceLevel.OPERATOR | TraceLevel.STRUCTURE,
            pid=trace.pid,
            command=command,
            engine_version=self._record.engine_version,
            events=events[np.argsort(events["start_ns"], kind="stable")],
            threads=(TracedThread(tid=0, name="host"),),
            graphs=tuple(graph.nodes for graph in self._book.recorded),
            backends=(BACKEND,),
            kernels=kernels,
            phases=self._spans.phases,
            n_lost=trace.n_lost,
            cut=None if trace.n_unfinished is not None else "the process did not end in order; its last commands lack",
            problems=tuple(self._problems()),
        )

    def _place(self, iteration: int, span: Span) -> None:
        here = np.flatnonzero((self._iteration == iteration) & (self._commands["type"] == CommandType.KERNEL))
        names = self._aligned.trace.names
        kernels = tuple(names[each] for each in self._commands["name"][here])
        roles = self._mapping.roles_of(span.phase, kernels)
        if roles is None:
            self._n_unlearnt += 1
            return
        self._graph[here], self._node[here] = self._book.places(roles, self._shape_spans[iteration])

    def _graph_events(self) -> Events:
        """Return one GRAPH for each iteration, from its first enqueue on."""
        made = [new_events(EventKind.GRAPH, 0)]
        for iteration in range(len(self._spans.iterations)):
            here = np.flatnonzero(self._iteration == iteration)
            graphs = np.unique(self._graph[here][self._graph[here] != NOTHING])
            place = {"iteration": iteration, "evaluation": iteration}
            event = new_events(EventKind.GRAPH, min(here.size, 1), value=0, thread=0, **place)
            event["graph"] = graphs[0] if graphs.size == 1 else NOTHING
            event["start_ns"] = self._commands["host_start_ns"][here[:1]]
            event["end_ns"] = self._commands["host_end_ns"][here].max(initial=0)
            made.append(event)
        return np.concatenate(made)

    def _operator_events(self) -> Events:
        known = np.flatnonzero(self._node != NOTHING)
        keys = np.stack([self._iteration[known], self._graph[known], self._node[known]])
        is_first = np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0))[: known.size]
        first = known[is_first]
        last = np.append(known[:-1][is_first[1:]], known[-1:])
        times = {"start_ns": self._commands["host_start_ns"][first], "end_ns": self._commands["host_end_ns"][last]}
        return new_events(EventKind.OPERATOR, first.size, thread=0, **times, **self._places(first))

    def _kernel_events(self, kernels: tuple[str, ...]) -> Events:
        """Return the commands of which START and END are known; markers compute nothing."""
        placed = np.flatnonzero(self._aligned.is_kept & (self._commands["type"] != CommandType.MARKER))
        times = {"start_ns": self._aligned.start_ns[placed], "end_ns": self._aligned.end_ns[placed]}
        number = {name: place for place, name in enumerate(kernels)}
        value = [number[self._name(each)] for each in placed.tolist()]
        return new_events(EventKind.KERNEL, placed.size, value=value, **times, **self._places(placed))

    def _places(self, commands: npt.NDArray[np.intp]) -> dict[str, Ints]:
        places = {name: getattr(self, f"_{name}")[commands] for name in ("iteration", "graph", "node")}
        return {**places, "evaluation": places["iteration"]}

    def _name(self, command: int) -> str:
        name = self._aligned.trace.names[self._commands["name"][command]]
        return name or CommandType(int(self._commands["type"][command])).name.lower()

    def _problems(self) -> Iterator[str]:
        trace = self._aligned.trace
        if trace.n_lost:
            yield f"the OpenCL layer lost {trace.n_lost} commands"
        is_kernel = self._commands["type"] == CommandType.KERNEL
        if n_unplaced := int((is_kernel & ~self._aligned.is_kept).sum()):
            yield f"{n_unplaced} of {is_kernel.sum()} kernels have no START and END that can be right, and are left out"
        if self._n_unlearnt:
            yield f"{self._n_unlearnt} iterations have another sequence of kernels than any that was learnt"
        if self._book.n_unplaced:
            yield f"{self._book.n_unplaced} kernels are of operators that the graphs do not have"
