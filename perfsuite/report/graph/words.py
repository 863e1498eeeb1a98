"""What is said of a graph in words, above its picture and on the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from perfsuite.report.graph.view import GraphView
from perfsuite.trace.graph.operators import OperatorGraph
from perfsuite.units import format_bytes, format_count, format_ns


def graph_words(view: GraphView) -> Iterator[str]:
    """Yield what the graph is, what it could gain, and what is left out of the picture."""
    graph = view.graph
    yield f"{_what(graph)}, {format_count(len(graph.operators), 'operator')}{_where(graph)}{_how_often(graph)}"
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
    yield _left_out(graph)
    if not graph.by_address and graph.edges:
        yield "edges by the tensors' names, some may be missing: the recorder did not read addresses"


def _what(graph: OperatorGraph) -> str:
    if graph.n_tokens is None:
        return f"graph {graph.number}"
    return f"graph {graph.number}, {'decode' if graph.n_tokens == 1 else f'prefill of {graph.n_tokens} tokens'}"


def _where(graph: OperatorGraph) -> str:
    backends = dict.fromkeys(each.backend for each in graph.operators if each.backend)
    return f" on {', '.join(backends)}" if backends else ""


def _how_often(graph: OperatorGraph) -> str:
    n = graph.n_evaluations
    return "" if not n else f", medians of {n} evaluations" if n > 1 else ", of one evaluation"


def _left_out(graph: OperatorGraph) -> str:
    constants = graph.constants
    weights = f"{format_count(constants.n_weights, 'weight')} of {format_bytes(constants.weights_bytes)}"
    others = format_count(constants.n - constants.n_weights, "other constant")
    return f"not drawn: {weights}, {others}"
