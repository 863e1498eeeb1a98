"""Names the operators of a recorded graph, fused pairs as one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice, takewhile

from perfsuite.records.engine_trace import NOTHING
from perfsuite.records.events import Node, Tensor


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
    """Whether a node computes nothing: a tensor without elements, or another view of one.

    A tensor of which nothing is known has some.
    """
    return node.op in _VIEWS or (0 in node.tensor.ne and any(node.tensor.ne))


#: Older releases of llama.cpp go through these as through operators.
_VIEWS = frozenset({"VIEW", "RESHAPE", "PERMUTE", "TRANSPOSE"})

_LAYER = re.compile(r"^(?P<role>.+?)(?:-|_l)(?P<layer>\d+)$")
#: Of a projector, too: what its encoder has is called as in a model, what is behind it ``mm.0``.
_WEIGHT = re.compile(
    r"^(?:v\.)?(?:blk\.(?P<layer>\d+)\.)?(?P<role>(?:mm\.)?\w+)\.(?:weight|bias)(?:\.(?P<adapter>lora_[ab]))?$"
)
_ROTATIONS = frozenset({"attn_inp_k_rot", "attn_inp_v_rot"})
#: What an unnamed product with a weight is called where that is not the weight's own name.
_ROLES_OF_WEIGHTS = {"attn_output": "attn_out", "output": "result_output", "token_embd": "result_output"}
#: What a product is called that a bias is added to, by the bias; only some releases of llama.cpp give it a name.
_ROLES_OF_BIASED = {"attn_q": "Qcur", "attn_k": "Kcur", "attn_v": "Vcur"}
#: The two operators of a gated unit, by the name of the first, that newer releases compute as one.
_GATED = {"ffn_silu": "ffn_swiglu", "ffn_moe_silu": "ffn_moe_swiglu"}
#: Rows of these are what a token is; releases of llama.cpp give them different names.
_EMBEDDINGS = {"token_embd.weight": "embd"}
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
        return self.node.ops


def timed_operators(graph: Sequence[Node]) -> tuple[RecordedOperator, ...]:
    """List the operators that the recorder times, in order, those that are computed in one go as one.

    A product with a Hadamard matrix is a transform (``FWHT``).
    """
    namer = _RoleNamer(dict(_biased(graph)))
    return tuple(namer.named(node) for _, node in timed_nodes(graph))


_Base = tuple[str, int | None]


class _RoleNamer:
    """Gives each operator of a graph its role; a second operator of one name in a layer carries its operator."""

    def __init__(self, unnamed: dict[str, _Base]) -> None:
        self._seen: dict[_Base, str] = {}
        #: What the unnamed tensors of the graph so far are called.
        self._unnamed = unnamed
        self._layer: int | None = None
        self._last: _Base = ("", None)

    def named(self, node: Node) -> RecordedOperator:
        if node.op == "MUL_MAT" and len(node.sources) > 1 and node.sources[0].name in _ROTATIONS:
            node = replace(node, op="FWHT")
        role, layer = self._last = self._base(node)
        if role in _GATED.values():
            return RecordedOperator(role=role, layer=layer, node=node)
        first_op = self._seen.setdefault((role, layer), node.ops)
        if first_op != node.ops:
            role = f"{role}_{node.ops.lower()}"
        return RecordedOperator(role=role, layer=layer, node=node)

    def _base(self, node: Node) -> _Base:
        if node.op == "GET_ROWS" and node.sources and node.sources[0].name in _EMBEDDINGS:
            return _EMBEDDINGS[node.sources[0].name], None
        name = _DECORATION.sub("", node.tensor.name)
        if match := _LAYER.match(name):
            self._layer = int(match["layer"])
        if node.op == "FLASH_ATTN_EXT":
            return "flash_attn_ext", self._layer
        if not name:
            return node.ops.lower(), None
        if not _UNNAMED.match(name):
            role, layer = _of_name(name)
            gate = _of_name(node.sources[0].name)[0] if node.op == "MUL" and node.sources else role
            return _GATED.get(gate, role), layer
        return self._unnamed.setdefault(name, self._base_of_unnamed(node))

    def _base_of_unnamed(self, node: Node) -> _Base:
        """Call an unnamed tensor by the rows that it gathers, by its weight, or by the tensor that it is made from."""
        if not node.sources:
            return node.ops.lower(), self._layer
        if node.ops == "GET_ROWS":
            is_attention = node.sources[0].name.startswith(("attn_out", "node_", "kqv_out"))
            return "attn_out_rows" if is_attention else "residual_rows", self._layer
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


def _biased(graph: Sequence[Node]) -> Iterator[tuple[str, _Base]]:
    """Yield what products without a name are called by the bias that is added to them."""
    for node in graph:
        if node.op != "ADD" or len(node.sources) < 2 or not _UNNAMED.match(node.sources[0].name):
            continue
        bias = _WEIGHT.match(node.sources[1].name)
        if bias and bias["role"] in _ROLES_OF_BIASED and bias["layer"]:
            yield node.sources[0].name, (_ROLES_OF_BIASED[bias["role"]], int(bias["layer"]))


def _of_name(name: str) -> _Base:
    match = _LAYER.match(name)
    return (match["role"], int(match["layer"])) if match else (name, None)


def _of_weight(weight: re.Match[str]) -> _Base:
    role = _ROLES_OF_WEIGHTS.get(weight["role"], weight["role"])
    layer = None if weight["layer"] is None else int(weight["layer"])
    return f"{role}_{weight['adapter']}" if weight["adapter"] else role, layer


_NORM = re.compile(r"norm(?:-(?P<layer>\d+))?")
_NORM_WEIGHT = re.compile(r"(?:blk\.\d+\.)?(?P<role>\w*norm\w*)\.weight")

#: What a weight's operator is called where that is not the weight's own name.
_ROLES = {"output_norm": "result_norm"}


def traced_operators(graph: Sequence[Node]) -> tuple[RecordedOperator, ...]:
    """Return the operators of a graph, one for each node, in order.

    Roles are those of `timed_operators`. A fused norm whose tensor bears the bare name of the norm is called by the
    weight that it is multiplied with.
    """
    return timed_operators([_named_by_weight(each) for each in graph])


def n_tokens_of(graph: Sequence[Node]) -> int | None:
    """Return how many tokens a graph is for: the most columns of a product of matrices; None where it has none."""
    return max((each.tensor.ne[1] for each in graph if each.op == "MUL_MAT" and each.tensor.ne[2] == 1), default=None)


def n_positions_of(graph: Sequence[Node]) -> int | None:
    """Return the positions of the KV cache that attention works on, padding and all; None where it has no attention."""
    fused = (each.sources[1].ne[1] for each in graph if each.op == "FLASH_ATTN_EXT" and len(each.sources) > 1)
    scores = (each.tensor for each in graph if each.op == "SOFT_MAX" and each.tensor.name.startswith("kq"))
    return max((*fused, *(tensor.ne[0] for tensor in scores)), default=None)


def _named_by_weight(node: Node) -> Node:
    """Return a fused norm whose tensor bears the bare name of the norm under its weight's name and its own layer."""
    bare = _NORM.fullmatch(node.tensor.name)
    weight = next((found for each in node.sources if (found := _NORM_WEIGHT.fullmatch(each.name))), None)
    if node.fused_op is None or bare is None or weight is None:
        return node
    role = _ROLES.get(weight["role"], weight["role"])
    name = role if bare["layer"] is None else f"{role}-{bare['layer']}"
    return replace(node, tensor=replace(node.tensor, name=name))
