"""Sizes that stand for a row where its gain is promised, and where it is checked: drawn from its whole range.

The range is parted into strata that are even on a logarithmic axis, one size is drawn from each, and the gain of a row
is the mean over its strata. A promise and a check part a range alike and draw for themselves: they are two estimates of
one quantity. Sizes that the choice was fitted to are drawn only where a stratum has no others.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass

from perfsuite.experiments.shapes.policy_record import PolicyRow

#: Strata of a row, as far as its range has so many sizes.
MOST_SIZES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnSizes:
    """One size of each stratum of a row."""

    #: Ascending.
    sizes: tuple[int, ...]
    #: Strata that have other sizes as well; a row with none is measured at all of its sizes.
    n_drawn: int
    #: Those of the sizes that the choice was fitted to.
    fitted_sizes: tuple[int, ...]


def drawn_sizes(row: PolicyRow, fitted: Collection[int], *, draw: random.Random, step: int = 1) -> DrawnSizes:
    """Draw the sizes of a row, in whole multiples of `step`; `fitted` are those that the table was made from."""
    open_to = [_unfitted(stratum, fitted) for stratum in _strata(row, step)]
    sizes = tuple(draw.choice(stratum) for stratum in open_to)
    return DrawnSizes(
        sizes=sizes,
        n_drawn=sum(len(stratum) > 1 for stratum in open_to),
        fitted_sizes=tuple(size for size in sizes if size in fitted),
    )


def _unfitted(stratum: range, fitted: Collection[int]) -> tuple[int, ...]:
    return tuple(size for size in stratum if size not in fitted) or tuple(stratum)


def _strata(row: PolicyRow, step: int) -> list[range]:
    """Part a range; the first sizes, which are far apart on a logarithmic axis, have strata of their own."""
    blocks = range(-(-row.least // step), row.most // step + 1)
    found = []
    for n_left in range(min(MOST_SIZES, len(blocks)), 0, -1):
        until = round(blocks[0] * ((blocks[-1] + 1) / blocks[0]) ** (1.0 / n_left))
        n_taken = min(max(1, until - blocks[0]), len(blocks) - n_left + 1)
        found.append(range(blocks[0] * step, blocks[n_taken - 1] * step + 1, step))
        blocks = blocks[n_taken:]
    return found
