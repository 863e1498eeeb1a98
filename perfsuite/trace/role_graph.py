"""The graph of a phase with the layers folded into one: a node for each role, an edge where one reads another."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from perfsuite.records.engine_trace import NOTHING
from perfsuite.records.events import Node
from perfsuite.records.observation import OperatorSpan, PhaseGraph, RoleEdge, RoleNode
from perfsuite.trace.graph.edges import sources_of
from perfsuite.trace.operators import timed_operators
from perfsuite.trace.recorded_nodes import recorded_graph


def role_graph(phase: str, operators: Sequence[OperatorSpan], edges: Sequence[RoleEdge]) -> PhaseGraph:
    """Sum the operators of one occurrence of a phase by role, in the order in which roles first run.

    Edges between roles that did not run are left out. What the last layer gives to the next one makes a circle.
    """
    counts = Counter(each.role for each in operators)
    spent_ns: dict[str, int] = defaultdict(int)
    for each in operators:
        spent_ns[each.role] += each.duration_ns
    first = {each.role: each.op for each in reversed(operators)}
    nodes = [RoleNode(role=role, op=first[role], n_operators=counts[role], time_ns=spent_ns[role]) for role in counts]
    known = tuple(each for each in edges if each.source in counts and each.target in counts)
    return PhaseGraph(phase=phase, nodes=tuple(nodes), edges=known)


def role_edges(graphs: Sequence[Sequence[Node]]) -> tuple[RoleEdge, ...]:
    """Return who reads what whom computes, by role, over all graphs of a phase; each pair once.

    A source that is a view, or has no name, stands for the operator that wrote the memory that it shows.
    """
    pairs = dict.fromkeys(pair for graph in graphs for pair in _pairs(graph))
    return tuple(RoleEdge(source=source, target=target) for source, target in pairs)


def _pairs(graph: Sequence[Node]) -> Iterator[tuple[str, str]]:
    recorded = recorded_graph(graph)
    named = zip(timed_operators(graph), recorded.places.values(), strict=True)
    roles = [operator.role for operator, place in named if place != NOTHING]
    yield from ((roles[writer], roles[reader]) for writer, reader in sources_of(recorded.nodes).reads)
