"""The operators of a traced graph with their roles, as the operators of a recorded one have them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from perfsuite.records.events import Node
from perfsuite.trace.operators import RecordedOperator, timed_operators

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
