"""Names the operators that groups of nodes compute, where a backend computes several nodes at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from perfsuite.records.events import Node
from perfsuite.trace.operators import RecordedOperator, timed_operators


def group_operators(graph: Sequence[Node], groups: Sequence[tuple[int, int]]) -> tuple[RecordedOperator | None, ...]:
    """Return the operator of each group of nodes, given by its first node and the one after its last.

    The nodes of a group are one operator, as a fused pair is on the CPU; `None` stands for a group that computes
    nothing: views and the like.
    """
    computed = [[node for node in graph[first:last] if node.timed] for first, last in groups]
    fused = [
        replace(node, fused=position > 0, timed=position == 0)
        for nodes in computed
        for position, node in enumerate(nodes)
    ]
    operators = iter(timed_operators(fused))
    return tuple(next(operators) if nodes else None for nodes in computed)
