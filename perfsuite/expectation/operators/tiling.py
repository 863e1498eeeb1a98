"""Padding of dimensions to a hardware tile, and what of the tile's work is of use."""

from __future__ import annotations

from perfsuite.expectation.operators.dimensions import check_positive


def padded(length: int, tile: int) -> int:
    """Round a dimension up to a whole number of tiles, ceil(length / tile) tile."""
    check_positive(length=length, tile=tile)
    return -(-length // tile) * tile


def tile_efficiency(length: int, tile: int) -> float:
    """Share of a padded dimension that is of use, length / (ceil(length / tile) tile): a sawtooth that tends to 1.

    *Source*: LIFE, Fig. 8, the BMM of decode over its growing context.
    """
    return length / padded(length, tile)
