"""Operators that bring a row to a common scale: RMS norm, layer norm, softmax."""

from __future__ import annotations

from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.dimensions import check_positive
from perfsuite.expectation.operators.number_format import BF16, NumberFormat

#: Operations of one element: square, add, scale, weight. *Source*: LIFE, 4h a norm.
RMS_NORM_FLOPS = 4
#: The same, and the mean: add up, subtract, and the bias.
LAYER_NORM_FLOPS = 7
#: Operations of one score: scale, mask, maximum, exponential, sum, division. *Source*: LIFE, 6 a score.
SOFTMAX_FLOPS = 6


def rms_norm(m: int, n: int, *, activations: NumberFormat = BF16, weights: NumberFormat = BF16) -> OpCost:
    """Cost an RMS norm of m rows of n: 4mn FLOPs; reads mn and n weights, writes mn. *Source*: LIFE, 4h a token."""
    return _norm(m, n, RMS_NORM_FLOPS, 1, activations, weights)


def layer_norm(m: int, n: int, *, activations: NumberFormat = BF16, weights: NumberFormat = BF16) -> OpCost:
    """Cost a layer norm of m rows of n: 7mn FLOPs; reads mn, n weights and n biases, writes mn."""
    return _norm(m, n, LAYER_NORM_FLOPS, 2, activations, weights)


def softmax(n_rows: int, n: int, *, activations: NumberFormat = BF16) -> OpCost:
    """Cost a softmax over n_rows rows of n scores: 6 FLOPs a score; reads and writes the scores. *Source*: LIFE."""
    check_positive(n_rows=n_rows, n=n)
    n_bytes = activations.stored_bytes(n_rows * n)
    return OpCost(flops=SOFTMAX_FLOPS * n_rows * n, read_bytes=n_bytes, written_bytes=n_bytes)


def _norm(m: int, n: int, flops: int, n_vectors: int, activations: NumberFormat, weights: NumberFormat) -> OpCost:
    check_positive(m=m, n=n)
    n_bytes, weight_bytes = activations.stored_bytes(m * n), n_vectors * weights.stored_bytes(n)
    return OpCost(
        flops=flops * m * n,
        read_bytes=n_bytes + weight_bytes,
        written_bytes=n_bytes,
        parameter_bytes=weight_bytes,
    )
