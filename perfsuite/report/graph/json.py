"""A graph of operators as JSON values; docs/trace-format.md describes the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfsuite.report.graph.roles import role_totals
from perfsuite.report.graph.view import GraphView, layers_of
from perfsuite.report.plain_fields import plain_fields
from perfsuite.trace.graph.operators import OperatorGraph

#: Raised whenever a key of the JSON changes its meaning.
SCHEMA = 1

_ROLE = ("role", "op", "n", "n_critical", "time_ns", "share_ratio", "bytes_per_s")
_NODE = (
    *("name", "role", "op", "type", "shape", "backend"),
    *("n_evaluations", "start_ns", "time_ns", "bytes_per_s"),
)


def plain_graphs(views: Sequence[GraphView]) -> dict[str, Any]:
    """Return graphs in the order in which they were asked for."""
    return {"schema": SCHEMA, "graphs": [plain_graph(view) for view in views]}


def plain_graph(view: GraphView) -> dict[str, Any]:
    """Return a whole graph, however much of it is drawn; numbers of nodes are their order of execution."""
    graph = view.graph
    constants = graph.constants
    layers = layers_of(graph)
    return {
        "title": view.title,
        "graph": graph.number,
        **plain_fields(graph, "n_tokens", "n_evaluations", "n_of_call", "gain_ratio", "wall_ns"),
        "edges_by": "address" if graph.by_address else "name",
        "serial_ns": graph.serial_ns if graph.gain_ratio else None,
        "critical_ns": graph.critical_ns if graph.gain_ratio else None,
        "constants": {
            "n": constants.n,
            "bytes": constants.n_bytes,
            "n_weights": constants.n_weights,
            "weights_bytes": constants.weights_bytes,
        },
        "nodes": [_node(graph, number, layers[number]) for number in range(len(graph.operators))],
        "edges": [list(edge) for edge in graph.edges],
        "critical_path": list(graph.critical),
        "siblings": [
            {**plain_fields(each, "shared", "time_ns", "saving_ns"), "members": list(each.members)}
            for each in graph.siblings
        ],
        "roles": [
            {**plain_fields(each, *_ROLE), "counters": dict(zip(graph.counter_names, each.counters, strict=True))}
            for each in role_totals(graph)
        ],
    }


def _node(graph: OperatorGraph, number: int, layer: int | None) -> dict[str, Any]:
    each = graph.operators[number]
    counters = dict(zip(graph.counter_names, each.counters, strict=True))
    return {**plain_fields(each, *_NODE), "layer": layer, "bytes": each.n_bytes, "counters": counters}
