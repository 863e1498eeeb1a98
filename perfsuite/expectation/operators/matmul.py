"""Matrix products: linear operators with float, quantised and adapted weights, and the batched product."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.expectation.operators.number_format import BF16, NumberFormat
from perfsuite.records.op_cost import OpCost


def kept_on_chip(cost: OpCost, *, read_bytes: int = 0, written_bytes: int = 0, n_dispatches: int = 0) -> OpCost:
    """Return the operator without some of its traffic and dispatches, operations unchanged."""
    return replace(
        cost,
        read_bytes=cost.read_bytes - read_bytes,
        written_bytes=cost.written_bytes - written_bytes,
        n_dispatches=cost.n_dispatches - n_dispatches,
    )


#: Operations of one element under rotary embedding: two products and a sum. *Source*: LIFE, 3h for q and for k.
ROPE_FLOPS = 3


def embedding(m: int, n_vocab: int, n_embd: int) -> OpCost:
    """Cost the lookup of m tokens in an (n_vocab, n_embd) table of bf16: all of it and a row read, m rows written.

    *Source*: LIFE, Table 1, vocab x hidden + hidden; the operation that it counts for an embedding is none of its
    totals'.
    """
    table_bytes = BF16.matrix_bytes(n_embd, n_vocab)
    return OpCost(
        read_bytes=table_bytes + BF16.stored_bytes(n_embd),
        written_bytes=BF16.stored_bytes(m * n_embd),
        parameter_bytes=table_bytes,
    )


def rope(m: int, width: int, *, table_elements: int, activations: NumberFormat = BF16) -> OpCost:
    """Cost rotary embedding of (m, width): 3 FLOPs an element; reads it and `table_elements` of bf16, writes it.

    *Source*: LIFE, 3h operations on q and on k.
    """
    n_bytes, table_bytes = activations.stored_bytes(m * width), BF16.stored_bytes(table_elements)
    return OpCost(
        flops=ROPE_FLOPS * m * width,
        read_bytes=n_bytes + table_bytes,
        written_bytes=n_bytes,
        parameter_bytes=table_bytes,
    )


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


#: Entries of the table that a piecewise-linear function looks up. *Source*: LIFE.
TABLE_ENTRIES = 256
#: Operations of one element: slope times x, plus the offset.
PIECEWISE_LINEAR_FLOPS = 2


def elementwise(m: int, n: int, *, activations: NumberFormat = BF16) -> OpCost:
    """Cost an elementwise operator over (m, n): mn FLOPs, reads 2mn, writes mn elements. *Source*: LIFE, Table 1."""
    n_bytes = activations.stored_bytes(m * n)
    return OpCost(flops=m * n, read_bytes=2 * n_bytes, written_bytes=n_bytes)


def piecewise_linear(n_elements: int, *, activations: NumberFormat = BF16) -> OpCost:
    """Cost a non-linear function by a 256-entry table: 2 FLOPs an element, reads the table. *Source*: LIFE, Table 1."""
    n_bytes, table_bytes = activations.stored_bytes(n_elements), activations.stored_bytes(TABLE_ENTRIES)
    return OpCost(
        flops=PIECEWISE_LINEAR_FLOPS * n_elements,
        read_bytes=n_bytes + table_bytes,
        written_bytes=n_bytes,
        parameter_bytes=table_bytes,
    )


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
