"""The feed-forward block of routed experts: router, top-k, experts, shared expert."""

from __future__ import annotations

from dataclasses import dataclass

from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.dimensions import check_at_most, check_count, check_positive
from perfsuite.expectation.operators.feed_forward import feed_forward
from perfsuite.expectation.operators.matmul import DEQUANTIZE_FLOPS, linear
from perfsuite.expectation.operators.norms import softmax
from perfsuite.expectation.operators.number_format import BF16, NumberFormat
from perfsuite.expectation.operators.pointwise import elementwise, piecewise_linear

#: Bytes of the index of a chosen expert.
_INDEX_BYTES = 4
#: Matrices of a gated expert.
_MATRICES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertsShape:
    """Dimensions of a block of experts, each gated."""

    n_embd: int
    n_experts: int
    n_experts_used: int
    n_ff_expert: int
    #: Width of the expert that every token passes; 0 for none.
    n_ff_shared: int = 0

    def __post_init__(self) -> None:
        """Refuse dimensions that no block of experts has."""
        check_positive(n_embd=self.n_embd, n_experts=self.n_experts, n_ff_expert=self.n_ff_expert)
        check_at_most(self.n_experts, n_experts_used=self.n_experts_used)
        check_count(n_ff_shared=self.n_ff_shared)


def expected_distinct_experts(n_experts: int, n_used: int, n_tokens: int) -> float:
    """Experts that a batch of n tokens touches on average: E (1 - (1 - u / E)^n).

    Each token takes u of E experts, all sets alike, independently of the others. *Source*: linearity of expectation.
    """
    check_positive(n_experts=n_experts, n_tokens=n_tokens)
    check_at_most(n_experts, n_used=n_used)
    return float(n_experts * (1.0 - (1.0 - n_used / n_experts) ** n_tokens))


def mixture_of_experts(
    m: int, shape: ExpertsShape, *, weights: NumberFormat = BF16, activations: NumberFormat = BF16
) -> OpCost:
    """Cost router, experts, their weighted sum and the shared expert for m tokens.

    FLOPs are those of m u token-expert pairs. Weights are read, and dequantised, once for each of the expected
    distinct experts; the products of that expectation are rounded to the nearest integer.
    """
    check_positive(m=m)
    cost = _router(m, shape, activations) + _experts(m, shape, weights, activations) + _sum(m, shape, activations)
    if shape.n_ff_shared:
        cost += feed_forward(m, shape.n_embd, shape.n_ff_shared, weights=weights, activations=activations)
        cost += elementwise(m, shape.n_embd, activations=activations)
    return cost


def _router(m: int, shape: ExpertsShape, activations: NumberFormat) -> OpCost:
    """Score all experts, softmax, and pick: one comparison for each expert and pick; weights stay unquantised."""
    pairs = m * shape.n_experts_used
    top_k = OpCost(
        flops=pairs * shape.n_experts,
        read_bytes=activations.stored_bytes(m * shape.n_experts),
        written_bytes=activations.stored_bytes(pairs) + _INDEX_BYTES * pairs,
    )
    scores = linear(m, shape.n_embd, shape.n_experts, activations=activations)
    return scores + softmax(m, shape.n_experts, activations=activations) + top_k


def _experts(m: int, shape: ExpertsShape, weights: NumberFormat, activations: NumberFormat) -> OpCost:
    pairs, n_embd, n_ff = m * shape.n_experts_used, shape.n_embd, shape.n_ff_expert
    distinct = expected_distinct_experts(shape.n_experts, shape.n_experts_used, m)
    expert_bytes = 2 * weights.matrix_bytes(n_embd, n_ff) + weights.matrix_bytes(n_ff, n_embd)
    weight_bytes = round(distinct * expert_bytes)
    n_weights = round(distinct * _MATRICES * n_embd * n_ff) if weights.is_quantized else 0
    narrow, wide = activations.stored_bytes(pairs * n_embd), activations.stored_bytes(pairs * n_ff)
    products = OpCost(
        flops=2 * _MATRICES * pairs * n_embd * n_ff + DEQUANTIZE_FLOPS * n_weights,
        read_bytes=2 * narrow + wide + weight_bytes,
        written_bytes=2 * wide + narrow,
        parameter_bytes=weight_bytes,
        n_dispatches=_MATRICES,
    )
    act = piecewise_linear(pairs * n_ff, activations=activations)
    return products + act + elementwise(pairs, n_ff, activations=activations)


def _sum(m: int, shape: ExpertsShape, activations: NumberFormat) -> OpCost:
    """Weigh the experts' outputs and add them up: a product and a sum for each, one output a token."""
    pairs = m * shape.n_experts_used
    elements = pairs * shape.n_embd
    return OpCost(
        flops=2 * elements,
        read_bytes=activations.stored_bytes(elements) + activations.stored_bytes(pairs),
        written_bytes=activations.stored_bytes(m * shape.n_embd),
    )
