"""A graph of operators as it ran: who reads whose result, how long each takes, and what that comes to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property

import networkx as nx
import numpy as np

from perfsuite.records.engine_trace import EngineTrace, EventKind, TraceRecorder
from perfsuite.records.events import Node
from perfsuite.trace.graph.bytes import operator_bytes
from perfsuite.trace.graph.choice import choose_graph
from perfsuite.trace.graph.edges import Constants, sources_of
from perfsuite.trace.graph.paths import Interval, Siblings, critical_path, siblings_of
from perfsuite.trace.graph.times import NodeTimes, node_times
from perfsuite.trace.statistics.operator_runs import OperatorRuns, operator_runs
from perfsuite.trace.statistics.traced_operators import n_tokens_of, traced_operators
from perfsuite.trace.timeline.labels import shape_text
from perfsuite.units import NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOperator:
    """One operator; what was not recorded is None."""

    #: Of the tensor that it makes, and that with the layer dropped.
    name: str
    role: str
    layer: int | None
    op: str
    #: Of the first source, which is the weights where there are any, and of the result.
    type: str
    shape: str
    backend: str | None
    n_evaluations: int
    time_ns: float | None
    start_ns: float | None
    counters: tuple[float | None, ...]
    n_bytes: int | None

    @property
    def bytes_per_s(self) -> float | None:
        """The bytes of its tensors over its time."""
        if self.n_bytes is None or not self.time_ns:
            return None
        return self.n_bytes * NS_PER_S / self.time_ns


@dataclass(frozen=True, kw_only=True)
class OperatorGraph:
    """One graph of a trace; operators are numbered in the order of execution."""

    #: Its number in the trace, and how many tokens it is for.
    number: int
    n_tokens: int | None
    n_evaluations: int
    #: Graphs that a call of llama_decode computes, this one included, as a median of its calls.
    n_of_call: int
    operators: tuple[GraphOperator, ...]
    edges: tuple[tuple[int, int], ...]
    #: False where edges had to be found by names.
    by_address: bool
    constants: Constants
    counter_names: tuple[str, ...]
    #: From the first entry to the last return; None where no time is known.
    wall_ns: float | None

    @cached_property
    def digraph(self) -> nx.DiGraph[int]:
        """The graph as networkx has it, each node with its `GraphOperator` as ``operator``."""
        digraph: nx.DiGraph[int] = nx.DiGraph()
        for number, operator in enumerate(self.operators):
            digraph.add_node(number, operator=operator)
        digraph.add_edges_from(self.edges)
        return digraph

    @cached_property
    def critical(self) -> tuple[int, ...]:
        """The operators of the path that takes the longest."""
        return critical_path(self.digraph, self._times_ns)

    @cached_property
    def siblings(self) -> tuple[Siblings, ...]:
        """Operators that share an input and could run side by side."""
        return siblings_of(
            self.digraph,
            {
                number: Interval(start_ns=each.start_ns, time_ns=each.time_ns)
                for number, each in enumerate(self.operators)
                if each.start_ns is not None and each.time_ns is not None
            },
        )

    @cached_property
    def serial_ns(self) -> float:
        """All operators one after the other."""
        return sum(self._times_ns.values())

    @cached_property
    def critical_ns(self) -> float:
        """The operators of the critical path one after the other."""
        return sum(self._times_ns.get(each, 0.0) for each in self.critical)

    @property
    def gain_ratio(self) -> float | None:
        """How many times as fast the graph could be at most; None where no time is known."""
        return self.serial_ns / self.critical_ns if self.critical_ns else None

    @cached_property
    def _times_ns(self) -> dict[int, float]:
        return {number: each.time_ns for number, each in enumerate(self.operators) if each.time_ns is not None}


def operator_graph(trace: EngineTrace, *, graph: str | int | None = None) -> OperatorGraph:
    """Return one graph of a trace with what is known of its operators.

    It is that of ``decode`` or ``prefill``, or a number; None for the decode graph that was evaluated the most often.

    Raises
    ------
    PerfsuiteError
        The trace has no such graph.
    """
    runs = operator_runs(_where_computed(trace))
    number = choose_graph(trace, runs, graph)
    nodes = trace.graphs[number]
    times, wall_ns = node_times(runs, number)
    backend = _backend(trace, runs, number)
    roles = traced_operators(nodes)
    sources = sources_of(nodes)
    return OperatorGraph(
        number=number,
        n_tokens=n_tokens_of(nodes),
        n_evaluations=max((each.n_evaluations for each in times.values()), default=0),
        n_of_call=_graphs_of_call(runs, number),
        operators=tuple(
            _operator(node, role.role, role.layer, backend, times.get(position), len(trace.counter_names))
            for position, (node, role) in enumerate(zip(nodes, roles, strict=True))
        ),
        edges=sources.edges,
        by_address=sources.by_address,
        constants=sources.constants,
        counter_names=trace.counter_names,
        wall_ns=wall_ns,
    )


def _graphs_of_call(runs: OperatorRuns, number: int) -> int:
    calls = np.unique(runs.step[runs.graph == number])
    pairs = np.unique(np.stack([runs.step, runs.evaluation]), axis=1)
    counts = np.unique(pairs[0][np.isin(pairs[0], calls)], return_counts=True)[1]
    return int(np.median(counts)) if len(counts) else 1


def _where_computed(trace: EngineTrace) -> EngineTrace:
    """Return a device's trace without the host's part of operators, which is not where their time goes."""
    if trace.recorder is not TraceRecorder.OPENCL:
        return trace
    return replace(trace, events=trace.events[trace.events["kind"] != EventKind.OPERATOR])


def _operator(
    node: Node, role: str, layer: int | None, backend: str | None, times: NodeTimes | None, n_counters: int
) -> GraphOperator:
    weights = node.sources[0] if node.sources else node.tensor
    product = node.op in ("MUL_MAT", "MUL_MAT_ID")
    return GraphOperator(
        name=node.tensor.name,
        role=role,
        layer=layer,
        op=node.ops,
        type=weights.type.lower() if product else node.tensor.type.lower(),
        shape=f"{shape_text(weights.ne)} to {shape_text(node.tensor.ne)}" if product else shape_text(node.tensor.ne),
        backend=backend,
        n_evaluations=0 if times is None else times.n_evaluations,
        time_ns=None if times is None else times.time_ns,
        start_ns=None if times is None else times.start_ns,
        counters=(None,) * n_counters if times is None or not times.counters else times.counters,
        n_bytes=operator_bytes(node),
    )


def _backend(trace: EngineTrace, runs: OperatorRuns, number: int) -> str | None:
    """Return where a graph was mostly computed: by the events of the graph, or of its evaluations."""
    graphs = trace.of(EventKind.GRAPH)
    own = graphs[graphs["graph"] == number]
    if not len(own):
        own = graphs[np.isin(graphs["evaluation"], runs.evaluation[runs.graph == number])]
    known = Counter(value for value in own["value"].tolist() if 0 <= value < len(trace.backends))
    return trace.backends[known.most_common(1)[0][0]] if known else None
