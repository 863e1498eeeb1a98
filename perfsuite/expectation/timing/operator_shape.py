"""The sizes by which one ggml operator is measured alone, and found again within a graph."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from perfsuite.errors import MeasurementError
from perfsuite.expectation.graph import Batch, Operator

#: A product of rows with one number each, which the engine computes element by element.
SCALED_ROWS = "MUL/scalar"

#: Operators that work on rows, each thread on its own; what they do between the rows of a tensor is all the same.
_ROWWISE = ("RMS_NORM+MUL", "RMS_NORM", "NORM")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorShape:
    """One operator as a unit test knows it; a size that it does not have is 0."""

    #: As a graph names it, such as ``MUL_MAT`` or ``RMS_NORM+MUL``.
    op: str
    #: ggml type of the parameters or of the KV cache, in lower case; ``f32`` where there is neither.
    type: str
    #: Elements of a row: of the weights, of a norm, of an attention head, of the scores.
    n_inner: int
    #: Rows of the weights.
    n_outer: int = 0
    #: Rows of activations: tokens, or tokens times heads where each head has a row of its own.
    n_tokens: int = 1
    n_heads: int = 0
    n_kv_heads: int = 0
    #: Positions that the KV cache held before these tokens.
    n_past: int = 0
    n_experts: int = 0
    #: Experts that each token is routed to.
    n_used: int = 0

    def __post_init__(self) -> None:
        """Refuse sizes that no operator has."""
        for name in ("n_inner", "n_tokens"):
            if getattr(self, name) < 1:
                raise MeasurementError(f"operator {self.op}: {name} is {getattr(self, name)}, expected 1 or more")
        for name in ("n_outer", "n_heads", "n_kv_heads", "n_past", "n_experts", "n_used"):
            if getattr(self, name) < 0:
                raise MeasurementError(f"operator {self.op}: {name} is {getattr(self, name)}, expected 0 or more")


def shape_of(operator: Operator, batch: Batch) -> OperatorShape:
    """Return the sizes of an operator of a graph; what no rule here knows is taken as work on rows."""
    op, output, sources = operator.op, operator.output, operator.sources
    first = sources[0]
    if op == "MUL_MAT":
        return _product(operator)
    if op == "MUL_MAT_ID":
        n_used, n_tokens = output.ne[1], output.ne[2]
        k, m, n_experts = first.ne[:3]
        return OperatorShape(
            op=op, type=first.type, n_inner=k, n_outer=m, n_tokens=n_tokens, n_experts=n_experts, n_used=n_used
        )
    if op == "FLASH_ATTN_EXT":
        return _attention(operator, batch)
    if op in ("GET_ROWS", "SET_ROWS"):
        kept, rows = (first.type, output.ne) if op == "GET_ROWS" else (output.type, first.ne)
        return OperatorShape(op=op, type=kept, n_inner=rows[0], n_outer=1, n_tokens=prod(rows[1:]))
    if op in ("ROPE", "SOFT_MAX"):
        heads, tokens = (1, 2) if op == "ROPE" else (2, 1)
        return OperatorShape(
            op=op, type="f32", n_inner=output.ne[0], n_tokens=output.ne[tokens], n_heads=output.ne[heads]
        )
    if op in _ROWWISE:
        return OperatorShape(op=op, type="f32", n_inner=output.ne[0], n_tokens=prod(output.ne[1:]))
    is_scaled = op == "MUL" and len(sources) > 1 and sources[1].ne[0] == 1 < output.ne[0]
    n_rows = max(1, min(batch.n_tokens, prod(output.ne[1:])))  # fewer than tokens where only some give logits
    return OperatorShape(
        op=SCALED_ROWS if is_scaled else op, type="f32", n_inner=output.n_elements // n_rows or 1, n_tokens=n_rows
    )


def _product(operator: Operator) -> OperatorShape:
    """Tell a product with parameters from one of attention, which has heads."""
    weights, x = operator.sources[:2]
    k, m = weights.ne[:2]
    if operator.cost.parameter_bytes:  # a matrix for each head, as in latent attention, is one with as many rows
        n_outer, n_tokens = m * prod(weights.ne[2:]), prod(x.ne[1:]) // prod(weights.ne[2:])
        return OperatorShape(op="MUL_MAT", type=weights.type, n_inner=k, n_outer=n_outer, n_tokens=n_tokens)
    return OperatorShape(
        op="MUL_MAT",
        type=weights.type,
        n_inner=k,
        n_outer=m,
        n_tokens=x.ne[1],
        n_heads=prod(x.ne[2:]),
        n_kv_heads=prod(weights.ne[2:]),
    )


def _attention(operator: Operator, batch: Batch) -> OperatorShape:
    """Count the positions that are in use: the engine skips masked ones, and a sliding window holds no more."""
    query, key, value = operator.sources[:3]
    n_tokens, n_kv = query.ne[1], key.ne[1]
    return OperatorShape(
        op=operator.op,
        type=key.type,
        n_inner=(key.ne[0] + value.ne[0]) // 2,
        n_tokens=n_tokens,
        n_heads=query.ne[2],
        n_kv_heads=key.ne[2],
        n_past=max(0, min(batch.n_used, n_kv) - n_tokens),
    )
