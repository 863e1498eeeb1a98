"""What a picture of a graph shows: some layers operator by operator, the others folded, and a colour for each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from perfsuite.errors import PerfsuiteError, meant
from perfsuite.records.engine_trace import EngineTrace
from perfsuite.trace.graph.operators import GraphOperator, OperatorGraph, operator_graph
from perfsuite.trace.timeline.tracks import printable
from perfsuite.units import format_bytes, format_bytes_per_s, format_count, format_ns

#: What colours can tell beside a counter.
TIME, BANDWIDTH = "time", "bandwidth"
#: Layers that are shown where none are asked for.
FIRST_LAYERS = (0, 1)
_UNNAMED = re.compile(r"(node_\d+)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnNode:
    """One box: an operator, or layers that are folded into one."""

    #: Positions of the operators.
    members: tuple[int, ...]
    lines: tuple[str, ...]
    #: What the colour tells; None of folded layers, and where it is not known.
    value: float | None
    is_fold: bool
    is_critical: bool


@dataclass(frozen=True, kw_only=True)
class GraphView:
    """A graph, and what of it is drawn."""

    title: str
    metric: str
    graph: OperatorGraph
    nodes: tuple[DrawnNode, ...]
    #: Positions in `nodes`.
    edges: tuple[tuple[int, int], ...]
    critical_edges: frozenset[tuple[int, int]]

    @property
    def metric_words(self) -> str:
        """What the colours tell, with its unit."""
        named = {
            TIME: "share of the time of all operators (%)",
            BANDWIDTH: "bandwidth: bytes of its tensors over its time (GB/s)",
        }
        return named.get(self.metric, f"{self.metric} per evaluation")


def graph_view(
    trace: EngineTrace,
    *,
    graph: str | int | None = None,
    metric: str = TIME,
    layers: tuple[int, ...] | None = FIRST_LAYERS,
    title: str | None = None,
) -> GraphView:
    """Look at one graph of a trace: ``decode``, ``prefill``, a number, or the decode graph evaluated the most often.

    The metric is ``time``, ``bandwidth`` or a counter. Layers are shown operator by operator, all with None. The title
    is that of what was run where none is given.

    Raises PerfsuiteError where the trace has no such graph, metric or layer, with those that it has.
    """
    if metric not in (accepted := (TIME, BANDWIDTH, *trace.counter_names)):
        names = ", ".join(accepted) + meant(metric, accepted)
        raise PerfsuiteError(f"metric {metric!r}: the trace has {names}")
    found = operator_graph(trace, graph=graph)
    groups = _groups(found, layers)
    home = {member: number for number, members in enumerate(groups) for member in members}
    edges = {(home[a], home[b]): None for a, b in found.edges if home[a] != home[b]}
    path = [home[each] for each in found.critical]
    return GraphView(
        title=printable(title or _title(trace)),
        metric=metric,
        graph=found,
        nodes=tuple(_drawn(found, members, metric) for members in groups),
        edges=tuple(edges),
        critical_edges=frozenset(pair for pair in pairwise(path) if pair in edges),
    )


def layers_of(graph: OperatorGraph) -> tuple[int | None, ...]:
    """Return the layer of each operator; one without a layer of its own between those of layers is of the one before.

    None for those before the first layer and behind the last one.
    """
    own = [each.layer for each in graph.operators]
    last = max((number for number, layer in enumerate(own) if layer is not None), default=-1)
    layers: list[int | None] = []
    for number, layer in enumerate(own):
        inherited = layers[-1] if layers and number < last else None
        layers.append(inherited if layer is None else layer)
    return tuple(layers)


def _groups(graph: OperatorGraph, shown: tuple[int, ...] | None) -> tuple[tuple[int, ...], ...]:
    """Return the operators that each box stands for: one, or all of a stretch of layers that are not shown."""
    layers = layers_of(graph)
    known = {each for each in layers if each is not None}
    missing = [each for each in shown or () if each not in known]
    if known and missing and shown != FIRST_LAYERS:
        raise PerfsuiteError(f"layer {missing[0]}: the graph has layers {min(known)} to {max(known)}")
    folds = [layer is not None and shown is not None and layer not in shown for layer in layers]
    groups: list[tuple[int, ...]] = []
    for is_fold, members in groupby(range(len(layers)), key=lambda each: folds[each]):
        whole = tuple(members)
        groups.extend([whole] if is_fold and len({layers[each] for each in whole}) > 1 else ((each,) for each in whole))
    return tuple(groups)


def _drawn(graph: OperatorGraph, members: tuple[int, ...], metric: str) -> DrawnNode:
    is_fold, value = len(members) > 1, None
    if is_fold:
        lines = tuple(_fold_lines(graph, members))
    else:
        operator = graph.operators[members[0]]
        value = _value(graph, operator, metric)
        lines = (f"{members[0]}: {_name(operator)}", *_operator_lines(operator, metric, value))
    is_critical = not set(members).isdisjoint(graph.critical)
    return DrawnNode(members=members, lines=lines, value=value, is_fold=is_fold, is_critical=is_critical)


def _value(graph: OperatorGraph, operator: GraphOperator, metric: str) -> float | None:
    """Return what is reported of an operator, in the unit of `metric_words`; None where it is not known."""
    if metric == TIME:
        return None if operator.time_ns is None or not graph.serial_ns else 100.0 * operator.time_ns / graph.serial_ns
    if metric == BANDWIDTH:
        return None if operator.bytes_per_s is None else operator.bytes_per_s / 1e9
    return operator.counters[graph.counter_names.index(metric)]


def _name(operator: GraphOperator) -> str:
    """Return an operator's name; with its role where the engine gave it none of its own."""
    layer = "" if operator.layer is None else f"-{operator.layer}"
    is_unnamed = _UNNAMED.match(operator.name)
    return printable(f"{operator.role}{layer} ({operator.name})" if is_unnamed else operator.name)


def _operator_lines(operator: GraphOperator, metric: str, value: float | None) -> Iterator[str]:
    yield printable(f"{operator.op} {operator.type} {operator.shape}")
    time = "time not known" if operator.time_ns is None else format_ns(operator.time_ns)
    if value is None:
        yield time
    elif metric == TIME:
        yield f"{time}, {value:.2g} %"
    elif metric == BANDWIDTH:
        yield f"{time}, {format_bytes_per_s(operator.bytes_per_s or 0.0)}"
    else:
        yield f"{time}, {value:,.0f} {printable(metric)}"


def _fold_lines(graph: OperatorGraph, members: Sequence[int]) -> Iterator[str]:
    layers = layers_of(graph)
    numbers = sorted({layer for each in members if (layer := layers[each]) is not None})
    kinds = {
        tuple((graph.operators[each].op, graph.operators[each].shape) for each in members if layers[each] == layer)
        for layer in numbers
    }
    alike = "alike" if len(kinds) == 1 else f"of {len(kinds)} kinds"
    times_ns = [time for each in members if (time := graph.operators[each].time_ns) is not None]
    share = f", {100.0 * sum(times_ns) / graph.serial_ns:.0f} %" if graph.serial_ns else ""
    yield f"{format_count(len(numbers), 'layer')} {alike}"
    yield f"layers {numbers[0]} to {numbers[-1]}, {format_count(len(members), 'operator')}"
    yield f"{format_ns(sum(times_ns))}{share}" if times_ns else "time not known"


def _title(trace: EngineTrace) -> str:
    files = [each.rpartition("/")[2] for each in trace.command if each.endswith(".gguf")]
    return files[0] if files else " ".join(trace.command) or trace.recorder.value


def graph_words(view: GraphView) -> Iterator[str]:
    """Yield what the graph is, what it could gain, and what is left out of the picture."""
    graph, n = view.graph, view.graph.n_evaluations
    tokens = {None: "", 1: ", decode"}.get(graph.n_tokens, f", a prompt of {graph.n_tokens} tokens")
    backends = ", ".join(dict.fromkeys(each.backend for each in graph.operators if each.backend))
    often = "" if not n else f", medians of {n} evaluations" if n > 1 else ", of one evaluation"
    operators = format_count(len(graph.operators), "operator")
    yield f"graph {graph.number}{tokens}, {operators}{f' on {backends}' if backends else ''}{often}"
    if graph.n_of_call > 1:
        yield f"a part: one of {graph.n_of_call} graphs that a call of llama_decode computes"
    if graph.gain_ratio is None:
        yield "times are not known"
    else:
        yield (
            f"one after the other {format_ns(graph.serial_ns)}, critical path {format_ns(graph.critical_ns)} "
            f"({graph.critical_ns / graph.serial_ns:.0%}): at most {graph.gain_ratio:.2f} times as fast side by side"
        )
    if graph.wall_ns is not None:
        yield f"from the first entry to the last return {format_ns(graph.wall_ns)}"
    constants = graph.constants
    weights = f"{format_count(constants.n_weights, 'weight')} of {format_bytes(constants.weights_bytes)}"
    yield f"not drawn: {weights}, {format_count(constants.n - constants.n_weights, 'other constant')}"
    if not graph.by_address and graph.edges:
        yield "edges by the tensors' names, some may be missing: the recorder did not read addresses"
