"""Names and shapes the operators of a recorded graph, fused pairs as one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from perfsuite.records.events import Node, Tensor

_LAYER = re.compile(r"^(?P<role>.+?)(?:-|_l)(?P<layer>\d+)$")
_WEIGHT = re.compile(r"^(?:blk\.(?P<layer>\d+)\.)?(?P<role>\w+)\.(?:weight|bias)$")
_DECORATION = re.compile(r"( \((view|reshaped|permuted|transposed|cont|copy|copy of .*)\))+$")
_UNNAMED = re.compile(r"^node_\d+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedOperator:
    """One timed operator of a recorded graph."""

    #: The tensor's name with the layer number dropped.
    role: str
    op: str
    layer: int | None
    output: Tensor
    sources: tuple[Tensor, ...]


def timed_operators(graph: Sequence[Node]) -> tuple[RecordedOperator, ...]:
    """List the operators that the recorder times, in order; the node that is fused into one is joined to it."""
    namer = _RoleNamer()
    operators = []
    for index, node in enumerate(graph):
        if not node.timed:
            continue
        follower = graph[index + 1] if index + 1 < len(graph) and graph[index + 1].fused else None
        operators.append(namer.named(_joined(node, follower)))
    return tuple(operators)


def _joined(node: Node, follower: Node | None) -> Node:
    if follower is None:
        return node
    others = tuple(source for source in follower.sources if source.name != node.tensor.name)
    return Node(
        tensor=follower.tensor,
        op=f"{node.op}+{follower.op}",
        timed=True,
        fused=False,
        sources=(*node.sources, *others),
    )


class _RoleNamer:
    """Gives each operator of a graph its role; a second operator of one name in a layer carries its operator."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int | None], str] = {}
        self._layer: int | None = None

    def named(self, node: Node) -> RecordedOperator:
        role, layer = self._base(node)
        first_op = self._seen.setdefault((role, layer), node.op)
        if first_op != node.op:
            role = f"{role}_{node.op.lower()}"
        return RecordedOperator(role=role, op=node.op, layer=layer, output=node.tensor, sources=node.sources)

    def _base(self, node: Node) -> tuple[str, int | None]:
        name = _DECORATION.sub("", node.tensor.name)
        if match := _LAYER.match(name):
            self._layer = int(match["layer"])
            return match["role"], self._layer
        if _UNNAMED.match(name):
            return self._unnamed(node), self._layer
        return name, None

    def _unnamed(self, node: Node) -> str:
        """Call an unnamed tensor by its weight, by the rows that it gathers, or by its operator."""
        if node.op == "GET_ROWS":
            return "attn_out_rows" if self._is_attention_output(node.sources[0]) else "residual_rows"
        weight = _WEIGHT.match(node.sources[0].name) if node.sources else None
        if weight and node.op == "MUL_MAT":
            return {"attn_output": "attn_out"}.get(weight["role"], weight["role"])
        return node.op.lower()

    @staticmethod
    def _is_attention_output(source: Tensor) -> bool:
        return source.name.startswith(("attn_out", "node_", "kqv_out"))
