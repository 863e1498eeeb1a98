"""A graph of operators as it ran: who reads whose result, how long each takes, and what that comes to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property

import networkx as nx
import numpy as np
import numpy.typing as npt

from perfsuite.errors import PerfsuiteError
from perfsuite.records.engine_trace import NOTHING, EngineTrace, EventKind, TraceRecorder
from perfsuite.records.events import Node
from perfsuite.trace.graph.edges import (
    Constants,
    Interval,
    Siblings,
    critical_path,
    operator_bytes,
    siblings_of,
    sources_of,
)
from perfsuite.trace.operators import RecordedOperator, n_tokens_of, traced_operators
from perfsuite.trace.statistics.operator_runs import OperatorRuns, operator_runs
from perfsuite.trace.timeline.tracks import shape_text
from perfsuite.units import NS_PER_S, format_count


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTimes:
    """One operator over all evaluations of its graph."""

    n_evaluations: int = 0
    #: From the first thread's entry to the last one's return; None where it was never evaluated.
    time_ns: float | None = None
    #: From the graph's first entry to this operator's.
    start_ns: float | None = None
    #: By counter, summed over threads; None where it was not counted.
    counters: tuple[float | None, ...] = ()


def node_times(runs: OperatorRuns, graph: int) -> tuple[dict[int, NodeTimes], float | None]:
    """Return the medians of each node that was computed, and of the evaluations from first entry to last return."""
    at = np.flatnonzero(runs.graph == graph)
    if not len(at):
        return {}, None
    evaluation = runs.evaluation[at]
    first = np.flatnonzero(np.diff(evaluation, prepend=evaluation[0] - 1))
    begin_ns = np.minimum.reduceat(runs.start_ns[at], first)
    wall_ns = np.maximum.reduceat(runs.end_ns[at], first) - begin_ns
    offset_ns = runs.start_ns[at] - np.repeat(begin_ns, np.diff(first, append=len(at)))
    order = np.argsort(runs.node[at], kind="stable")
    bounds = np.flatnonzero(np.diff(runs.node[at][order])) + 1
    found = {}
    for members in np.split(order, bounds):
        found[int(runs.node[at[members[0]]])] = NodeTimes(
            n_evaluations=len(members),
            time_ns=float(np.median(runs.duration_ns[at[members]])),
            start_ns=float(np.median(offset_ns[members])),
            counters=tuple(_counted(column) for column in runs.counters[at[members]].T),
        )
    return found, float(np.median(wall_ns))


def _counted(values: npt.NDArray[np.int64]) -> float | None:
    known = values[values != NOTHING]
    return float(np.median(known)) if len(known) else None


#: What can be asked for beside a number.
DECODE, PREFILL = "decode", "prefill"


def choose_graph(trace: EngineTrace, runs: OperatorRuns, wanted: str | int | None = None) -> int:
    """Return the graph that was evaluated the most often: of one token, of several, or of any.

    ``decode``, ``prefill``, or a graph's number may be wanted; None is ``decode`` where there is one, any otherwise.

    Raises PerfsuiteError: there is no such graph, with those that there are.
    """
    counts = evaluation_counts(trace, runs)
    candidates = [number for number, graph in enumerate(trace.graphs) if graph]
    if wanted is None:
        chosen = [each for each in candidates if _phase(trace, each) == DECODE and counts[each]] or candidates
    elif wanted in (DECODE, PREFILL):
        chosen = [each for each in candidates if _phase(trace, each) == wanted]
    else:
        chosen = [each for each in candidates if str(each) == str(wanted)]
    if not chosen:
        asked = "graph" if wanted is None else f"graph {wanted!r}"
        raise PerfsuiteError(f"{asked}: {_there_are(trace, counts)}")
    return max(chosen, key=lambda each: (counts[each], -each))


def evaluation_counts(trace: EngineTrace, runs: OperatorRuns) -> list[int]:
    """Return for each graph how often it was evaluated: by its operators, or where none is recorded by its events."""
    pairs = np.unique(np.stack([runs.graph, runs.evaluation]), axis=1)[0]
    if not len(pairs):
        pairs = trace.of(EventKind.GRAPH)["graph"].astype(np.int64)
    return [int(np.count_nonzero(pairs == number)) for number in range(len(trace.graphs))]


def _phase(trace: EngineTrace, number: int) -> str | None:
    n_tokens = n_tokens_of(trace.graphs[number])
    return None if n_tokens is None else DECODE if n_tokens == 1 else PREFILL


def _there_are(trace: EngineTrace, counts: list[int]) -> str:
    if not trace.graphs:
        return "the trace has none; record it with the level 'operator'"
    known = (
        f"{number} ({_phase(trace, number) or 'no product of matrices'}, {format_count(len(graph), 'operator')}, "
        f"{format_count(counts[number], 'evaluation')})"
        for number, graph in enumerate(trace.graphs[:8])
    )
    more = f" and {len(trace.graphs) - 8} more" if len(trace.graphs) > 8 else ""
    return f"the trace has {', '.join(known)}{more}; accepted are decode, prefill, or a number"


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
        return sum(self._times_ns.values())

    @cached_property
    def critical_ns(self) -> float:
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

    Raises PerfsuiteError: the trace has no such graph.
    """
    runs = operator_runs(_where_computed(trace))
    number = choose_graph(trace, runs, graph)
    nodes = trace.graphs[number]
    times, wall_ns = node_times(runs, number)
    backend = _backend(trace, runs, number)
    sources = sources_of(nodes)
    return OperatorGraph(
        number=number,
        n_tokens=n_tokens_of(nodes),
        n_evaluations=max((each.n_evaluations for each in times.values()), default=0),
        n_of_call=_graphs_of_call(runs, number),
        operators=tuple(
            _operator(node, role, backend, times.get(position, NodeTimes()), len(trace.counter_names))
            for position, (node, role) in enumerate(zip(nodes, traced_operators(nodes), strict=True))
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
    node: Node, named: RecordedOperator, backend: str | None, times: NodeTimes, n_counters: int
) -> GraphOperator:
    weights = node.sources[0] if node.sources else node.tensor
    product = node.op in ("MUL_MAT", "MUL_MAT_ID")
    return GraphOperator(
        name=node.tensor.name,
        role=named.role,
        layer=named.layer,
        op=node.ops,
        type=weights.type.lower() if product else node.tensor.type.lower(),
        shape=f"{shape_text(weights.ne)} to {shape_text(node.tensor.ne)}" if product else shape_text(node.tensor.ne),
        backend=backend,
        n_evaluations=times.n_evaluations,
        time_ns=times.time_ns,
        start_ns=times.start_ns,
        counters=times.counters or (None,) * n_counters,
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
