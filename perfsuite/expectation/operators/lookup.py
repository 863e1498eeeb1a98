"""Operators that look a token or a position up in a table: the embedding and RoPE."""

from __future__ import annotations

from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.number_format import BF16, NumberFormat

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
