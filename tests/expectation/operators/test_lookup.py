"""Costs of the embedding and of RoPE."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.lookup import embedding, rope

_SIDE = st.integers(1, 5000)


def test_the_paper_reads_the_whole_embedding() -> None:
    """vocab x hidden + hidden elements are read where the table counts as a whole, else a row a token."""
    assert embedding(3, 100, 8, whole_table=True).read_bytes == 2 * (100 * 8 + 8)
    assert embedding(3, 100, 8) == OpCost(read_bytes=48, written_bytes=48, parameter_bytes=48)


@given(_SIDE, _SIDE, _SIDE, _SIDE)
def test_lookups_of_rows_add_up_over_tokens(m: int, more: int, n_vocab: int, n_embd: int) -> None:
    """Two chunks of tokens move what both together do."""
    parts, whole = (
        embedding(m, n_vocab, n_embd) + embedding(more, n_vocab, n_embd),
        embedding(m + more, n_vocab, n_embd),
    )
    assert (parts.flops, parts.moved_bytes) == (whole.flops, whole.moved_bytes)


@given(_SIDE, _SIDE, _SIDE)
def test_rope_takes_three_operations_an_element(m: int, width: int, table_elements: int) -> None:
    """3mw FLOPs; reads the elements and the tables, writes the elements."""
    cost = rope(m, width, table_elements=table_elements)
    assert cost.flops == 3 * m * width
    assert cost.read_bytes == 2 * (m * width + table_elements)
    assert cost.written_bytes == 2 * m * width
    assert cost.parameter_bytes == 2 * table_elements


def test_empty_lookups_are_refused() -> None:
    """Dimensions of zero, and tables of fewer than no elements, are named."""
    with pytest.raises(ArchitectureError, match="n_vocab is 0"):
        embedding(1, 0, 8)
    with pytest.raises(ArchitectureError, match="table_elements is -1"):
        rope(1, 8, table_elements=-1)
