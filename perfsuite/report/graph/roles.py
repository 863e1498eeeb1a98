"""What the operators of a graph come to by role: those of all layers in one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from perfsuite.records.codec import plain_fields
from perfsuite.report.graph.view import GraphView, layers_of
from perfsuite.trace.graph.edges import Siblings
from perfsuite.trace.graph.operators import GraphOperator, OperatorGraph
from perfsuite.units import NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleTotals:
    """Operators of one role."""

    role: str
    op: str
    n: int
    n_critical: int
    #: Sums; None where no operator of the role has one.
    time_ns: float | None
    #: Bytes of those with a time over their time.
    bytes_per_s: float | None
    counters: tuple[float | None, ...]
    #: Of the serial sum; None where no time is known.
    share_ratio: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SiblingTotals:
    """Groups of siblings of the same roles."""

    shared: str
    roles: tuple[str, ...]
    n: int
    time_ns: float
    saving_ns: float


def role_totals(graph: OperatorGraph) -> tuple[RoleTotals, ...]:
    """Sum operators by role, the one that takes the longest first."""
    members: dict[tuple[str, str], list[int]] = {}
    for number, each in enumerate(graph.operators):
        members.setdefault((each.role, each.op), []).append(number)
    totals = [_totals(graph, role, op, numbers) for (role, op), numbers in members.items()]
    return tuple(sorted(totals, key=lambda each: -(each.time_ns or 0.0)))


def sibling_totals(graph: OperatorGraph) -> tuple[SiblingTotals, ...]:
    """Sum groups of siblings by their roles, those that would save the most first."""
    members: dict[tuple[str, tuple[str, ...]], list[Siblings]] = {}
    for each in graph.siblings:
        roles = tuple(_called(graph.operators[number]) for number in each.members)
        members.setdefault((_called(graph.operators[each.shared]), roles), []).append(each)
    found = (
        SiblingTotals(
            shared=shared,
            roles=roles,
            n=len(groups),
            time_ns=sum(each.time_ns for each in groups),
            saving_ns=sum(each.saving_ns for each in groups),
        )
        for (shared, roles), groups in members.items()
    )
    return tuple(sorted(found, key=lambda each: -each.saving_ns))


def _called(operator: GraphOperator) -> str:
    return operator.role or operator.op


def _totals(graph: OperatorGraph, role: str, op: str, numbers: Sequence[int]) -> RoleTotals:
    timed = [each for number in numbers if (each := graph.operators[number]).time_ns is not None]
    time_ns = sum(each.time_ns or 0.0 for each in timed)
    sizes = [each.n_bytes for each in timed if each.n_bytes is not None]
    whole = bool(time_ns) and len(sizes) == len(timed)
    critical = set(graph.critical)
    return RoleTotals(
        role=role or op,
        op=op,
        n=len(numbers),
        n_critical=sum(number in critical for number in numbers),
        time_ns=time_ns if timed else None,
        bytes_per_s=sum(sizes) * NS_PER_S / time_ns if whole else None,
        counters=tuple(_sum([each.counters[place] for each in timed]) for place in range(len(graph.counter_names))),
        share_ratio=time_ns / graph.serial_ns if timed and graph.serial_ns else None,
    )


def _sum(counts: Sequence[float | None]) -> float | None:
    known = [each for each in counts if each is not None]
    return sum(known) if known and len(known) == len(counts) else None


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
