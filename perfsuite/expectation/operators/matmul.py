"""Matrix products: linear operators with float, quantised and adapted weights, and the batched product."""

from __future__ import annotations

from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.number_format import BF16, NumberFormat

#: Operations to dequantise one element: subtract the zero point, multiply by the scale.
DEQUANTIZE_FLOPS = 2
#: Elementwise steps of an adapter beside its product: the scale, and the addition to the weights.
LORA_STEPS = 2


def linear(m: int, k: int, n: int, *, weights: NumberFormat, activations: NumberFormat = BF16) -> OpCost:
    """Cost a linear operator, (m, k) x (k, n): 2mkn FLOPs; reads mk + kn, writes mn elements.

    Where `weights` are quantised, this is the product alone: `dequantize_weights` comes beside it.

    *Source*: LIFE, Table 1, without the subtracted first addition, which its own totals do not subtract.
    """
    parameter_bytes = weights.matrix_bytes(k, n)
    return OpCost(
        flops=2 * m * k * n,
        read_bytes=activations.stored_bytes(m * k) + parameter_bytes,
        written_bytes=activations.stored_bytes(m * n),
        parameter_bytes=parameter_bytes,
    )


def dequantize_weights(k: int, n: int) -> OpCost:
    """Cost what quantised (k, n) weights add to the product: 2kn FLOPs a pass whatever m, in its dispatch.

    *Source*: LIFE, quantised linear.
    """
    return OpCost(flops=DEQUANTIZE_FLOPS * k * n, n_dispatches=0)


def lora_update(k: int, n: int, rank: int) -> OpCost:
    """Cost W + s A B for a (k, n) matrix, bf16 A (k, r), B (r, n), in the dispatch of the operator that uses it.

    FLOPs 2krn for the product and kn for each of the two elementwise steps, (2r + 2)kn together; reads A and B.

    *Source*: LIFE, LoRA linear and Table 12.
    """
    parameter_bytes = BF16.matrix_bytes(k, rank) + BF16.matrix_bytes(rank, n)
    return OpCost(
        flops=(2 * rank + LORA_STEPS) * k * n,
        read_bytes=parameter_bytes,
        parameter_bytes=parameter_bytes,
        n_dispatches=0,
    )


def bmm(b: int, m: int, k: int, n: int, *, activations: NumberFormat, right_bytes: int) -> OpCost:
    """Cost a batched product, b x (m, k) x (k, n), whose right-hand side takes `right_bytes`.

    FLOPs 2bmkn; reads bmk elements and the right-hand side, writes bmn elements.

    *Source*: LIFE, Table 1, without the subtracted first addition.
    """
    return OpCost(
        flops=2 * b * m * k * n,
        read_bytes=activations.stored_bytes(b * m * k) + right_bytes,
        written_bytes=activations.stored_bytes(b * m * n),
    )
