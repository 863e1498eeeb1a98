"""Costs of matrix products."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.expectation.operators.tiling import chunk_bounds, padded, tile_efficiency
from perfsuite.expectation.paper.operators import (
    find_format,
)


@pytest.mark.parametrize(
    ("name", "n_bytes"),
    [
        *(("bf16", 20), ("fp16", 20), ("fp32", 40), ("int8", 10), ("int16", 20), ("int4", 5)),
        *(("mxfp8", 33), ("MXINT8", 33), ("q4_0", 18), ("Q6_K", 210)),
    ],
)
def test_ten_elements_take_whole_blocks(name: str, n_bytes: int) -> None:
    """Values are stored in whole bytes or blocks of their format."""
    assert find_format(name).stored_bytes(10) == n_bytes


@pytest.mark.parametrize(
    ("name", "k", "n", "n_bytes"),
    [
        *(("int4", k, 4096, k * 4096 * 133 // 256) for k in (128, 4096, 11008)),
        ("int4", 129, 3, 3 * 65 + 15),
        ("int4", 1, 1, 1 + 3),
        ("mxfp8", 64, 10, 10 * 66),
        ("mxint8", 64, 10, 10 * 66),
    ],
)
def test_matrices_carry_the_parameters_of_their_groups(name: str, k: int, n: int, n_bytes: int) -> None:
    """128 int4 weights along k share 2 bytes of scale and half a byte of zero, rounded up once; 32 of MX 8 bits."""
    assert find_format(name).matrix_bytes(k, n) == n_bytes


@given(st.integers(1, 3000), st.integers(1, 3000), st.integers(0, 100))
def test_chunks_cover_the_prompt_in_order(n_prompt: int, chunk: int, n_past: int) -> None:
    bounds = list(chunk_bounds(n_prompt, chunk, n_past))
    assert sum(n_tokens for _, n_tokens in bounds) == n_prompt
    assert all(1 <= n_tokens <= chunk for _, n_tokens in bounds)
    assert bounds[0][0] == n_past
    ends = [past + n_tokens for past, n_tokens in bounds]
    assert [past for past, _ in bounds[1:]] == ends[:-1]


@given(st.integers(1, 10_000), st.integers(1, 500))
def test_padding_reaches_the_next_whole_tile(length: int, tile: int) -> None:
    up = padded(length, tile)
    assert up % tile == 0
    assert 0 <= up - length < tile
    assert padded(up, tile) == up
    assert tile_efficiency(length, tile) == pytest.approx(length / up)
