"""Padding to a tile."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.operators.tiling import check_count, check_positive, chunk_bounds, padded, tile_efficiency


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: check_positive(m=0), "m is 0, expected a positive integer"),
        (lambda: check_positive(k=1, n=-4), "n is -4, expected a positive integer"),
        (lambda: check_positive(m=1.5), "m is 1.5, expected a positive integer"),
        (lambda: check_positive(m=True), "m is True, expected a positive integer"),
        (lambda: check_count(n_past=-1), "n_past is -1, expected an integer of 0 or more"),
        (lambda: list(chunk_bounds(10, 0)), "chunk is 0, expected a positive integer"),
        (lambda: padded(1, 0), "tile is 0, expected a positive integer"),
    ],
)
def test_a_dimension_out_of_range_is_named(check: Callable[..., Any], message: str) -> None:
    """The error has the field, the value and what is accepted."""
    with pytest.raises(ArchitectureError) as caught:
        check()
    check_positive(m=1)
    check_count(n_past=0)
    assert str(caught.value) == message


@given(st.integers(1, 3000), st.integers(1, 3000), st.integers(0, 100))
def test_chunks_cover_the_prompt_in_order(n_prompt: int, chunk: int, n_past: int) -> None:
    """Each chunk begins where the one before ended, and none is longer than asked for."""
    bounds = list(chunk_bounds(n_prompt, chunk, n_past))
    assert sum(n_tokens for _, n_tokens in bounds) == n_prompt
    assert all(1 <= n_tokens <= chunk for _, n_tokens in bounds)
    assert bounds[0][0] == n_past
    ends = [past + n_tokens for past, n_tokens in bounds]
    assert [past for past, _ in bounds[1:]] == ends[:-1]


@given(st.integers(1, 10_000), st.integers(1, 500))
def test_padding_reaches_the_next_whole_tile(length: int, tile: int) -> None:
    """The padded length is a multiple of the tile, less than a tile above, and padding it again changes nothing."""
    up = padded(length, tile)
    assert up % tile == 0
    assert 0 <= up - length < tile
    assert padded(up, tile) == up
    assert 0 < tile_efficiency(length, tile) <= 1


def test_the_efficiency_is_a_sawtooth_that_tends_to_one() -> None:
    """It is 1 at whole tiles, falls just behind them, and less with each; its mean over 4096 positions is 0.964."""
    assert tile_efficiency(64, 64) == tile_efficiency(4096, 64) == 1.0
    assert tile_efficiency(65, 64) < tile_efficiency(129, 64) < tile_efficiency(4033, 64) < 1.0
    assert fmean(tile_efficiency(length, 64) for length in range(1, 4097)) == pytest.approx(0.964, abs=5e-4)
