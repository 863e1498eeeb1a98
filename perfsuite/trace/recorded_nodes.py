"""The graphs of the suite's own recorders as those of a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, takewhile

from perfsuite.records.engine_trace import NOTHING, TracedNode, TracedTensor
from perfsuite.records.events import Node, Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedGraph:
    """One graph: the nodes that compute something.

    A tensor without elements is timed and computes nothing: the last layer's, where a part of a batch has no output.
    """

    nodes: tuple[TracedNode, ...]
    #: By position in the recorded graph, of the nodes that are timed: position in `nodes`; NOTHING where there are no
    #: elements.
    places: dict[int, int]

    def is_fused(self, node: int) -> bool:
        """Tell whether a node is computed together with the one behind it."""
        return self.nodes[node].fused_op is not None


def recorded_graph(graph: Sequence[Node]) -> RecordedGraph:
    """Take the timed nodes of a recorded graph, each with those that are fused into it."""
    nodes: list[TracedNode] = []
    places = {}
    for position in (position for position, node in enumerate(graph) if node.timed):
        node = _traced(graph, position)
        places[position] = NOTHING if is_empty(node) else len(nodes)
        nodes += [] if is_empty(node) else [node]
    return RecordedGraph(nodes=tuple(nodes), places=places)


def is_empty(node: TracedNode) -> bool:
    """Tell whether a node makes a tensor without elements; one of which nothing is known does not."""
    return 0 in node.tensor.ne and any(node.tensor.ne)


def _traced(graph: Sequence[Node], position: int) -> TracedNode:
    node = graph[position]
    made, sources, ops = node.tensor, list(node.sources), list[str]()
    for follower in takewhile(lambda each: each.fused, islice(graph, position + 1, None)):
        sources += [source for source in follower.sources if source.name != made.name]
        made = follower.tensor
        ops.append(follower.op)
    return TracedNode(
        tensor=traced_tensor(made),
        op=node.op,
        sources=tuple(map(traced_tensor, sources)),
        fused_op="+".join(ops) or None,
    )


def traced_tensor(tensor: Tensor) -> TracedTensor:
    """Return a recorded tensor as a trace has it."""
    return TracedTensor(name=tensor.name, type=tensor.type, ne=tensor.ne, nb=tensor.nb, root=tensor.root)
