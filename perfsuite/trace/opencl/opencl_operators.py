"""Which node of which graph each kernel of an iteration computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from perfsuite.errors import MeasurementError
from perfsuite.records.engine_columns import evaluations_of, splits_of
from perfsuite.records.engine_trace import NOTHING, Ints
from perfsuite.records.events import EngineRecord, Node, Phase, Span, Tensor
from perfsuite.trace.operators import timed_operators
from perfsuite.trace.recorded_nodes import RecordedGraph, recorded_graph
from perfsuite.trace.span_events import SpanEvents, span_events


@dataclass(frozen=True, slots=True, kw_only=True)
class _NamedNode:
    role: str
    graph: int
    node: int


@dataclass(slots=True)
class GraphBook:
    """Collects the graphs of a run, and finds the nodes of its kernels by their operators' roles."""

    #: A record of the same workload that lists the graphs; None where there is none: then nodes have names alone.
    shapes: EngineRecord | None
    graphs: list[tuple[Node, ...]] = field(default_factory=list)
    #: Kernels whose operator is in none of the graphs.
    n_unplaced: int = 0
    _recorded: list[RecordedGraph] = field(default_factory=list)
    _named: dict[tuple[int, ...], tuple[_NamedNode, ...]] = field(default_factory=dict)
    _made: dict[tuple[str, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.shapes is not None:
            self._recorded += map(recorded_graph, self.shapes.graphs)
            self.graphs += [graph.nodes for graph in self._recorded]

    def places(self, roles: Sequence[str], span: Span | None) -> tuple[Ints, Ints]:
        """Return the graph and the node of each kernel of one iteration; NOTHING where it is not known.

        Kernels that follow each other in one of `roles`, which is in the order of their enqueue, are one operator's;
        `span` is the same iteration in `shapes`.
        """
        runs = [(role, len(list(kernels))) for role, kernels in groupby(roles)]
        named = () if span is None else self._nodes_of(span)
        found = _matched([role for role, _ in runs], named) if named else self._without_shapes(runs)
        lengths = [length for _, length in runs]
        graph, node = (np.repeat(np.array(each, np.int64), lengths) for each in found)
        self.n_unplaced += int((node == NOTHING).sum())
        return graph, node

    def _nodes_of(self, span: Span) -> tuple[_NamedNode, ...]:
        assert self.shapes is not None
        launch_ns, graph = _launches(self.shapes)
        computed = tuple(graph[(launch_ns >= span.start_ns) & (launch_ns < span.end_ns)].tolist())
        if computed not in self._named:
            self._named[computed] = self._name(self.shapes, computed)
        return self._named[computed]

    def _name(self, shapes: EngineRecord, computed: Sequence[int]) -> tuple[_NamedNode, ...]:
        """Name the nodes of the parts of a graph as if it were whole."""
        operators = timed_operators([node for graph in computed for node in shapes.graphs[graph]])
        places = [(graph, node) for graph in computed for node in self._recorded[graph].places.values()]
        return tuple(
            _NamedNode(role=operator.role, graph=graph, node=node)
            for operator, (graph, node) in zip(operators, places, strict=True)
            if node != NOTHING
        )

    def _without_shapes(self, runs: Sequence[tuple[str, int]]) -> tuple[list[int], list[int]]:
        """Take the operators for the nodes of a graph of which nothing but their order is known."""
        roles = tuple(role for role, _ in runs)
        graph = self._made.get(roles)
        if graph is None:
            graph = self._made[roles] = len(self.graphs)
            self.graphs.append(tuple(map(_named_only, roles)))
        return [graph] * len(roles), list(range(len(roles)))


def _launches(shapes: EngineRecord) -> tuple[Ints, Ints]:
    """Return when what was launched: the graphs of splits, or those that were evaluated."""
    if shapes.splits:
        splits = splits_of(shapes)
        return splits["launch_ns"], splits["graph"]
    evaluations = evaluations_of(shapes)
    return evaluations.launch_ns, evaluations.graph


def _matched(roles: Sequence[str], named: Sequence[_NamedNode]) -> tuple[list[int], list[int]]:
    """Find the operators in the graph, each behind the one before."""
    graphs, nodes, at = [], [], 0
    for role in roles:
        place = next((place for place in range(at, len(named)) if named[place].role == role), None)
        graphs.append(NOTHING if place is None else named[place].graph)
        nodes.append(NOTHING if place is None else named[place].node)
        at = at if place is None else place + 1
    return graphs, nodes


def _named_only(role: str) -> Node:
    tensor = Tensor(name=role, type="?", ne=(0, 0, 0, 0), nb=(0, 0, 0, 0), root=None)
    return Node(tensor=tensor, op="?", sources=())


def iterations_of(shapes: EngineRecord | None, spans: SpanEvents) -> tuple[Span | None, ...]:
    """Return the iterations of another record of the same workload, or of its first repetition as often as needed.

    Raises
    ------
    MeasurementError
        It has other iterations.
    """
    if shapes is None:
        return (None,) * len(spans.iterations)
    theirs = span_events(shapes).iterations
    if not theirs or len(spans.iterations) % len(theirs) or _kinds(theirs) != _kinds(spans.iterations)[: len(theirs)]:
        raise MeasurementError(
            f"the record with the graphs has {len(theirs)} iterations, the traced run {len(spans.iterations)}; record "
            "both of the same workload"
        )
    return theirs * (len(spans.iterations) // len(theirs))


def _kinds(spans: tuple[Span, ...]) -> list[tuple[Phase, int]]:
    return [(span.phase, span.n_tokens) for span in spans]
