"""Sizes at which a row is checked: within its range, and none of those that it was made from."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from perfsuite.records.shape_policy import PolicyRow

#: Sizes of a row that are measured, at least where the range has them, and at most.
LEAST_SIZES, MOST_SIZES = 6, 10


def held_out_sizes(row: PolicyRow, measured_sizes: Sequence[int], step: int = 1) -> tuple[int, ...]:
    """Return sizes evenly between neighbours, on the logarithmic axis, in whole multiples of `step`.

    They lie between the measured sizes of the row, so that they stand for the same part of it; where there are none,
    between these and the ends of the range; () where the range holds nothing but what was measured.
    """
    inner = [size for size in measured_sizes if row.measured_least <= size <= row.measured_most]
    found = _between(inner, measured_sizes, step) or _between([row.least, *inner, row.most], measured_sizes, step)
    return _spread(found)


def _between(sizes: Sequence[int], measured: Collection[int], step: int) -> list[int]:
    n_each = -(-LEAST_SIZES // max(1, len(sizes) - 1))
    parts = [part / (n_each + 1) for part in range(1, n_each + 1)]
    found = (
        round(low * (high / low) ** part / step) * step for low, high in pairwise(sizes) for part in parts if high > low
    )
    return [size for size in dict.fromkeys(found) if sizes[0] <= size <= sizes[-1] and size not in measured]


def _spread(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return no more than are measured, evenly from the first to the last."""
    if len(sizes) <= MOST_SIZES:
        return tuple(sizes)
    return tuple(sizes[round(place * (len(sizes) - 1) / (MOST_SIZES - 1))] for place in range(MOST_SIZES))
