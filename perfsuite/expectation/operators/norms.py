"""Operators that bring a row to a common scale: RMS norm and softmax."""

from __future__ import annotations

from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.number_format import BF16, NumberFormat

#: Operations of one element: square, add, scale, weight. *Source*: LIFE, 4h a norm.
RMS_NORM_FLOPS = 4
#: Operations of one score: scale, mask, maximum, exponential, sum, division. *Source*: LIFE, 6 a score.
SOFTMAX_FLOPS = 6


def rms_norm(m: int, n: int, *, activations: NumberFormat = BF16) -> OpCost:
    """Cost an RMS norm of m rows: 4mn FLOPs; reads mn and n bf16 weights, writes mn. *Source*: LIFE, 4h a token."""
    n_bytes, weight_bytes = activations.stored_bytes(m * n), BF16.stored_bytes(n)
    return OpCost(
        flops=RMS_NORM_FLOPS * m * n,
        read_bytes=n_bytes + weight_bytes,
        written_bytes=n_bytes,
        parameter_bytes=weight_bytes,
    )


def softmax(n_rows: int, n: int, *, activations: NumberFormat = BF16) -> OpCost:
    """Cost a softmax over n_rows rows of n scores: 6 FLOPs a score; reads and writes the scores. *Source*: LIFE."""
    n_bytes = activations.stored_bytes(n_rows * n)
    return OpCost(flops=SOFTMAX_FLOPS * n_rows * n, read_bytes=n_bytes, written_bytes=n_bytes)
