"""Matrix products: linear operators with float, quantised and adapted weights, and the batched product."""

from __future__ import annotations

from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.dimensions import check_count, check_positive
from perfsuite.expectation.operators.number_format import BF16, NumberFormat

#: Operations to dequantise one element: subtract the zero point, multiply by the scale.
DEQUANTIZE_FLOPS = 2
#: Elementwise steps of an adapter beside its product: the scale, and the addition to the weights.
LORA_STEPS = 2


def linear(
    m: int, k: int, n: int, *, weights: NumberFormat = BF16, activations: NumberFormat = BF16, bias: bool = False
) -> OpCost:
    """Cost a linear operator, (m, k) x (k, n) and a bias (n) if there is one.

    FLOPs 2mkn (+ mn with bias); reads mk + kn (+ n), writes mn elements. Where `weights` are quantised, this is the
    product alone: see `quantized_linear`. The bias is stored as the activations are.
    *Source*: LIFE, Table 1, without the subtracted first addition, which its own totals do not subtract.
    """
    check_positive(m=m, k=k, n=n)
    parameter_bytes = weights.matrix_bytes(k, n) + (activations.stored_bytes(n) if bias else 0)
    return OpCost(
        flops=2 * m * k * n + (m * n if bias else 0),
        read_bytes=activations.stored_bytes(m * k) + parameter_bytes,
        written_bytes=activations.stored_bytes(m * n),
        parameter_bytes=parameter_bytes,
    )


def dequantize_weights(k: int, n: int) -> OpCost:
    """Cost what a quantised linear operator adds to the product: 2kn FLOPs in its own dispatch, nothing moved."""
    check_positive(k=k, n=n)
    return OpCost(flops=DEQUANTIZE_FLOPS * k * n, n_dispatches=0)


def quantized_linear(
    m: int, k: int, n: int, *, weights: NumberFormat, activations: NumberFormat = BF16, bias: bool = False
) -> OpCost:
    """Cost a linear operator that dequantises its (k, n) weights on the way: 2kn FLOPs beside `linear`.

    *Source*: LIFE, quantised linear; 2kn a pass whatever m.
    """
    product = linear(m, k, n, weights=weights, activations=activations, bias=bias)
    return product + dequantize_weights(k, n) if weights.is_quantized else product


def lora_update(k: int, n: int, rank: int, *, adapters: NumberFormat = BF16) -> OpCost:
    """Cost W + s A B for a (k, n) matrix, A (k, r), B (r, n), in the dispatch of the operator that uses it.

    FLOPs 2krn for the product and kn for each of the two elementwise steps, (2r + 2)kn together; reads A and B.
    *Source*: LIFE, LoRA linear and Table 12.
    """
    check_positive(k=k, n=n, rank=rank)
    parameter_bytes = adapters.matrix_bytes(k, rank) + adapters.matrix_bytes(rank, n)
    return OpCost(
        flops=(2 * rank + LORA_STEPS) * k * n,
        read_bytes=parameter_bytes,
        parameter_bytes=parameter_bytes,
        n_dispatches=0,
    )


def lora_linear(
    m: int,
    k: int,
    n: int,
    rank: int,
    *,
    weights: NumberFormat = BF16,
    activations: NumberFormat = BF16,
    adapters: NumberFormat = BF16,
    merged: bool = False,
) -> OpCost:
    """Cost a linear operator with a low-rank adapter of rank r: inline at each call, or merged once before.

    Inline adds `lora_update` to `quantized_linear`; merged costs what the bare operator does, and the update is paid
    once with `lora_update`. *Source*: LIFE, LoRA.
    """
    update = lora_update(k, n, rank, adapters=adapters)
    bare = quantized_linear(m, k, n, weights=weights, activations=activations)
    return bare if merged else bare + update


def bmm(b: int, m: int, k: int, n: int, *, activations: NumberFormat = BF16, right_bytes: int | None = None) -> OpCost:
    """Cost a batched product, b x (m, k) x (k, n).

    FLOPs 2bmkn; reads bmk + bkn, writes bmn elements. `right_bytes` is what the right-hand side takes where it is not
    bkn activations: quantised, shared between matrices of the batch, or parameters.
    *Source*: LIFE, Table 1, without the subtracted first addition.
    """
    check_positive(b=b, m=m, k=k, n=n)
    if right_bytes is None:
        right_bytes = activations.stored_bytes(b * k * n)
    check_count(right_bytes=right_bytes)
    return OpCost(
        flops=2 * b * m * k * n,
        read_bytes=activations.stored_bytes(b * m * k) + right_bytes,
        written_bytes=activations.stored_bytes(b * m * n),
    )
