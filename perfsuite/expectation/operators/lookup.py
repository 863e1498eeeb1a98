"""Operators that look a token or a position up in a table: the embedding and RoPE."""

from __future__ import annotations

from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.dimensions import check_count, check_positive
from perfsuite.expectation.operators.number_format import BF16, NumberFormat

#: Operations of one element under rotary embedding: two products and a sum. *Source*: LIFE, 3h for q and for k.
ROPE_FLOPS = 3


def embedding(m: int, n_vocab: int, n_embd: int, *, weights: NumberFormat = BF16, whole_table: bool = False) -> OpCost:
    """Cost the lookup of m tokens in an (n_vocab, n_embd) table: no FLOPs, m rows read and written.

    With `whole_table` it reads all the table and a row, as LIFE counts it: vocab x hidden + hidden.
    *Source*: LIFE, Table 1; the operation that it counts for an embedding is none of its totals'.
    """
    check_positive(m=m, n_vocab=n_vocab, n_embd=n_embd)
    table_bytes = weights.matrix_bytes(n_embd, n_vocab if whole_table else m)
    row_bytes = weights.stored_bytes(n_embd) if whole_table else 0
    return OpCost(
        read_bytes=table_bytes + row_bytes,
        written_bytes=weights.stored_bytes(m * n_embd),
        parameter_bytes=table_bytes,
    )


def rope(m: int, width: int, *, table_elements: int = 0, activations: NumberFormat = BF16) -> OpCost:
    """Cost rotary embedding of (m, width): 3 FLOPs an element; reads it and `table_elements`, writes it.

    *Source*: LIFE, 3h operations on q and on k.
    """
    check_positive(m=m, width=width)
    check_count(table_elements=table_elements)
    n_bytes, table_bytes = activations.stored_bytes(m * width), BF16.stored_bytes(table_elements)
    return OpCost(
        flops=ROPE_FLOPS * m * width,
        read_bytes=n_bytes + table_bytes,
        written_bytes=n_bytes,
        parameter_bytes=table_bytes,
    )
