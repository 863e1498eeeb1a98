"""Chunked prefill."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.operators.chunks import chunk_bounds


@given(st.integers(1, 3000), st.integers(1, 3000), st.integers(0, 100))
def test_chunks_cover_the_prompt_in_order(n_prompt: int, chunk: int, n_past: int) -> None:
    """Each chunk begins where the one before ended, and none is longer than asked for."""
    bounds = list(chunk_bounds(n_prompt, chunk, n_past))
    assert sum(n_tokens for _, n_tokens in bounds) == n_prompt
    assert all(1 <= n_tokens <= chunk for _, n_tokens in bounds)
    assert bounds[0][0] == n_past
    ends = [past + n_tokens for past, n_tokens in bounds]
    assert [past for past, _ in bounds[1:]] == ends[:-1]


def test_a_chunk_has_tokens() -> None:
    """A chunk of zero tokens is refused."""
    with pytest.raises(ArchitectureError, match="chunk is 0"):
        list(chunk_bounds(10, 0))
