"""Dimensions: refused by name where they cannot be, cut into chunks, padded to tiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from perfsuite.errors import ArchitectureError


def check_positive(**dimensions: int) -> None:
    """Raise ArchitectureError for the first dimension that is not an integer of 1 or more."""
    for field, value in dimensions.items():
        if not _is_integer(value) or value < 1:
            _refuse(field, value, "a positive integer")


def check_count(**counts: int) -> None:
    """Raise ArchitectureError for the first count that is not an integer of 0 or more."""
    for field, value in counts.items():
        if not _is_integer(value) or value < 0:
            _refuse(field, value, "an integer of 0 or more")


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _refuse(field: str, value: object, accepted: str) -> NoReturn:
    raise ArchitectureError(f"{field} is {value!r}, expected {accepted}")


def chunk_bounds(n_prompt: int, chunk: int, n_past: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the positions before each chunk and its tokens; the last chunk has what is left."""
    check_positive(n_prompt=n_prompt, chunk=chunk)
    check_count(n_past=n_past)
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
