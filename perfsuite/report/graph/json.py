"""A graph of operators as JSON values; docs/trace-format.md describes the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfsuite.report.graph.roles import role_totals
from perfsuite.report.graph.view import GraphView, layers_of
from perfsuite.trace.graph.operators import GraphOperator, OperatorGraph
from perfsuite.trace.graph.paths import Siblings

#: Raised whenever a key of the JSON changes its meaning.
SCHEMA = 1


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
        "n_tokens": graph.n_tokens,
        "n_evaluations": graph.n_evaluations,
        "n_of_call": graph.n_of_call,
        "edges_by": "address" if graph.by_address else "name",
        "serial_ns": graph.serial_ns if graph.gain_ratio else None,
        "critical_ns": graph.critical_ns if graph.gain_ratio else None,
        "gain_ratio": graph.gain_ratio,
        "wall_ns": graph.wall_ns,
        "constants": {
            "n": constants.n,
            "bytes": constants.n_bytes,
            "n_weights": constants.n_weights,
            "weights_bytes": constants.weights_bytes,
        },
        "nodes": [_node(graph, number, layers[number]) for number in range(len(graph.operators))],
        "edges": [list(edge) for edge in graph.edges],
        "critical_path": list(graph.critical),
        "siblings": [_siblings(each) for each in graph.siblings],
        "roles": [
            {
                "role": each.role,
                "op": each.op,
                "n": each.n,
                "n_critical": each.n_critical,
                "time_ns": each.time_ns,
                "share_ratio": each.share_ratio,
                "bytes_per_s": each.bytes_per_s,
                "counters": dict(zip(graph.counter_names, each.counters, strict=True)),
            }
            for each in role_totals(graph)
        ],
    }


def _node(graph: OperatorGraph, number: int, layer: int | None) -> dict[str, Any]:
    each: GraphOperator = graph.operators[number]
    return {
        "name": each.name,
        "role": each.role,
        "layer": layer,
        "op": each.op,
        "type": each.type,
        "shape": each.shape,
        "backend": each.backend,
        "n_evaluations": each.n_evaluations,
        "start_ns": each.start_ns,
        "time_ns": each.time_ns,
        "bytes": each.n_bytes,
        "bytes_per_s": each.bytes_per_s,
        "counters": dict(zip(graph.counter_names, each.counters, strict=True)),
    }


def _siblings(siblings: Siblings) -> dict[str, Any]:
    return {
        "shared": siblings.shared,
        "members": list(siblings.members),
        "time_ns": siblings.time_ns,
        "saving_ns": siblings.saving_ns,
    }
