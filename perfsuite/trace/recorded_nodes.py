"""The graphs of the suite's own recorders as those of a trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice, takewhile

from perfsuite.records.engine_trace import NOTHING
from perfsuite.records.events import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedGraph:
    """One graph: the nodes that compute something.

    A tensor without elements is timed and computes nothing: the last layer's, where a part of a batch has no output.
    """

    nodes: tuple[Node, ...]
    #: By position in the recorded graph, of the nodes that are timed: position in `nodes`; NOTHING where there are no
    #: elements.
    places: dict[int, int]


def recorded_graph(graph: Sequence[Node]) -> RecordedGraph:
    """Take the timed nodes of a recorded graph, each with those that are fused into it."""
    nodes: list[Node] = []
    places = {}
    for position, node in timed_nodes(graph):
        places[position] = NOTHING if is_empty(node) else len(nodes)
        nodes += [] if is_empty(node) else [node]
    return RecordedGraph(nodes=tuple(nodes), places=places)


def timed_nodes(graph: Sequence[Node]) -> Iterator[tuple[int, Node]]:
    """Yield the position of each timed node, and the node with those behind it that are fused into it."""
    for position, node in enumerate(graph):
        if node.timed:
            followers = takewhile(lambda each: each.fused, islice(graph, position + 1, None))
            yield position, reduce(fused_nodes, followers, node)


def fused_nodes(node: Node, follower: Node) -> Node:
    """Return two nodes that are computed in one go as one."""
    others = tuple(source for source in follower.sources if source.name != node.tensor.name)
    fused_op = follower.op if node.fused_op is None else f"{node.fused_op}+{follower.op}"
    return replace(node, tensor=follower.tensor, sources=(*node.sources, *others), fused_op=fused_op)


def is_empty(node: Node) -> bool:
    """Whether a node makes a tensor without elements; one of which nothing is known does not."""
    return 0 in node.tensor.ne and any(node.tensor.ne)
