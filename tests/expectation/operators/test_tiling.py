"""Padding to a tile."""

from __future__ import annotations

from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.operators.tiling import padded, tile_efficiency


@given(st.integers(1, 10_000), st.integers(1, 500))
def test_padding_reaches_the_next_whole_tile(length: int, tile: int) -> None:
    """The padded length is a multiple of the tile, less than a tile above, and padding it again changes nothing."""
    up = padded(length, tile)
    assert up % tile == 0
    assert 0 <= up - length < tile
    assert padded(up, tile) == up
    assert 0 < tile_efficiency(length, tile) <= 1


def test_the_mean_efficiency_is_the_papers() -> None:
    """Over contexts of 1 to 4096 at a tile of 64, 0.964 of the work is of use."""
    assert fmean(tile_efficiency(length, 64) for length in range(1, 4097)) == pytest.approx(0.964, abs=5e-4)


def test_the_efficiency_is_a_sawtooth_that_tends_to_one() -> None:
    """It is 1 at whole tiles, falls just behind them, and falls less with each."""
    assert tile_efficiency(64, 64) == tile_efficiency(4096, 64) == 1.0
    assert tile_efficiency(65, 64) < tile_efficiency(129, 64) < tile_efficiency(4033, 64) < 1.0


def test_a_tile_has_a_size() -> None:
    """A tile of zero is refused."""
    with pytest.raises(ArchitectureError, match="tile is 0"):
        padded(1, 0)
