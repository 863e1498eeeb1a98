"""Dimensions: refused by name where they cannot be, cut into chunks, padded to tiles."""

from __future__ import annotations

from collections.abc import Iterator

from perfsuite.errors import ArchitectureError


def check_positive(**dimensions: int) -> None:
    """Raise ArchitectureError for the first dimension that is not 1 or more."""
    for name, value in dimensions.items():
        if value < 1:
            raise ArchitectureError(f"{name} is {value!r}, expected a positive integer")


def chunk_bounds(n_prompt: int, chunk: int, n_past: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the positions before each chunk and its tokens; the last chunk has what is left."""
    check_positive(n_prompt=n_prompt, chunk=chunk)
    for first in range(0, n_prompt, chunk):
        yield n_past + first, min(chunk, n_prompt - first)


def padded(length: int, tile: int) -> int:
    """Round a dimension up to a whole number of tiles, ceil(length / tile) tile."""
    check_positive(length=length, tile=tile)
    return -(-length // tile) * tile


def tile_efficiency(length: int, tile: int) -> float:
    """Share of a padded dimension that is of use, length / (ceil(length / tile) tile): a sawtooth that tends to 1.

    *Source*: LIFE, Fig. 8, the BMM of decode over its growing context.
    """
    return length / padded(length, tile)
