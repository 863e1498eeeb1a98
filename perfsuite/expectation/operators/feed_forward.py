"""The dense feed-forward block, gated or plain, fused or not."""

from __future__ import annotations

from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.dimensions import check_positive
from perfsuite.expectation.operators.fusion import fused as fuse
from perfsuite.expectation.operators.fusion import kept_on_chip
from perfsuite.expectation.operators.matmul import quantized_linear
from perfsuite.expectation.operators.number_format import BF16, NumberFormat
from perfsuite.expectation.operators.pointwise import elementwise, piecewise_linear


def feed_forward(
    m: int,
    n_embd: int,
    n_ff: int,
    *,
    gated: bool = True,
    fused: bool = False,
    weights: NumberFormat = BF16,
    activations: NumberFormat = BF16,
    bias: bool = False,
) -> OpCost:
    """Cost down(act(gate x) * (up x)), or down(act(up x)) where it is not gated.

    FLOPs 6 m h I, or 4 m h I plain, 2 m I for the piecewise-linear activation, m I for the product of the halves.
    Fused, the block is one operator: the (m, I) tensors stay on chip and gate and up read their input once.
    *Source*: LIFE, MLP.
    """
    check_positive(m=m, n_embd=n_embd, n_ff=n_ff)
    wide = quantized_linear(m, n_embd, n_ff, weights=weights, activations=activations, bias=bias)
    down = quantized_linear(m, n_ff, n_embd, weights=weights, activations=activations, bias=bias)
    act = piecewise_linear(m * n_ff, activations=activations)
    product = elementwise(m, n_ff, activations=activations)
    if not fused:
        return wide + wide + act + product + down if gated else wide + act + down
    width_bytes = activations.stored_bytes(m * n_ff)
    inside = fuse(wide, act, width_bytes)
    if gated:
        input_bytes = activations.stored_bytes(m * n_embd)
        up = kept_on_chip(wide, read_bytes=input_bytes, written_bytes=width_bytes, n_dispatches=1)
        inside = fuse(up + inside, kept_on_chip(product, read_bytes=width_bytes), width_bytes)
    return fuse(inside, down, width_bytes)
