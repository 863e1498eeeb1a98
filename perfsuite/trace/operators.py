"""Names the operators of a recorded graph, fused pairs as one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from perfsuite.records.events import Node, Tensor
from perfsuite.trace.recorded_nodes import timed_nodes

_LAYER = re.compile(r"^(?P<role>.+?)(?:-|_l)(?P<layer>\d+)$")
_WEIGHT = re.compile(r"^(?:blk\.(?P<layer>\d+)\.)?(?P<role>\w+)\.(?:weight|bias)(?:\.(?P<adapter>lora_[ab]))?$")
_ROTATIONS = frozenset({"attn_inp_k_rot", "attn_inp_v_rot"})
#: What an unnamed product with a weight is called where that is not the weight's own name.
_ROLES_OF_WEIGHTS = {"attn_output": "attn_out", "output": "result_output", "token_embd": "result_output"}
_DECORATION = re.compile(r"( \((view|reshaped|permuted|transposed|cont|copy|copy of .*)\))+$")
_UNNAMED = re.compile(r"^node_\d+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedOperator:
    """One timed operator of a recorded graph, by its role: its tensor's name with the layer number dropped."""

    role: str
    layer: int | None
    node: Node

    @property
    def op(self) -> str:
        """The operator with what is fused into it."""
        return self.node.ops


def timed_operators(graph: Sequence[Node]) -> tuple[RecordedOperator, ...]:
    """List the operators that the recorder times, in order, those that are computed in one go as one.

    A product with a Hadamard matrix is a transform (``FWHT``).
    """
    namer = _RoleNamer()
    return tuple(namer.named(_computed(node)) for _, node in timed_nodes(graph))


def _computed(node: Node) -> Node:
    if node.op == "MUL_MAT" and len(node.sources) > 1 and node.sources[0].name in _ROTATIONS:
        return replace(node, op="FWHT")
    return node


_Base = tuple[str, int | None]


class _RoleNamer:
    """Gives each operator of a graph its role; a second operator of one name in a layer carries its operator."""

    def __init__(self) -> None:
        self._seen: dict[_Base, str] = {}
        #: What the unnamed tensors of the graph so far are called.
        self._unnamed: dict[str, _Base] = {}
        self._layer: int | None = None
        self._last: _Base = ("", None)

    def named(self, node: Node) -> RecordedOperator:
        role, layer = self._last = self._base(node)
        first_op = self._seen.setdefault((role, layer), node.ops)
        if first_op != node.ops:
            role = f"{role}_{node.ops.lower()}"
        return RecordedOperator(role=role, layer=layer, node=node)

    def _base(self, node: Node) -> _Base:
        name = _DECORATION.sub("", node.tensor.name)
        if match := _LAYER.match(name):
            self._layer = int(match["layer"])
        if not _UNNAMED.match(name):
            return _of_name(name)
        return self._unnamed.setdefault(name, self._base_of_unnamed(node))

    def _base_of_unnamed(self, node: Node) -> _Base:
        """Call an unnamed tensor by the rows that it gathers, by its weight, or by the tensor that it is made from."""
        if not node.sources:
            return node.ops.lower(), self._layer
        if node.ops == "GET_ROWS":
            return "attn_out_rows" if self._is_attention_output(node.sources[0]) else "residual_rows", self._layer
        if node.ops == "FLASH_ATTN_EXT":
            return "flash_attn_ext", self._layer
        if node.ops == "FWHT":
            role, layer = self._of_source(node.sources[1])
            return f"{role}_rot", layer
        weights = (match for source in node.sources if (match := _WEIGHT.match(source.name)))
        if weight := next(weights, None):
            return _of_weight(weight)
        return self._of_source(node.sources[0])

    def _of_source(self, source: Tensor) -> _Base:
        name = _DECORATION.sub("", source.name)
        if not name:  # a view of a tensor without a name, which is the one before
            return self._last
        role, layer = self._unnamed.get(name) or _of_name(name)
        return role.removesuffix("_rows"), layer

    @staticmethod
    def _is_attention_output(source: Tensor) -> bool:
        return source.name.startswith(("attn_out", "node_", "kqv_out"))


def _of_name(name: str) -> _Base:
    match = _LAYER.match(name)
    return (match["role"], int(match["layer"])) if match else (name, None)


def _of_weight(weight: re.Match[str]) -> _Base:
    role = _ROLES_OF_WEIGHTS.get(weight["role"], weight["role"])
    layer = None if weight["layer"] is None else int(weight["layer"])
    return f"{role}_{weight['adapter']}" if weight["adapter"] else role, layer
