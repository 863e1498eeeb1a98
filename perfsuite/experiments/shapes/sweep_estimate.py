"""What each size takes, from its samples of all rounds: a quantile, the same one for all sizes."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from perfsuite.experiments.shapes.sweep_jumps import roughness_ratio

#: The part of the samples that lie below the estimate, and those that take its place where it falls between two modes.
QUARTILE = 0.25
_PARTS = (QUARTILE, 0.125, 0.5)

#: Another part is better when neighbours differ by less than this share of what they do by the quartile.
_BETTER_RATIO = 0.5

#: The part of the estimates that their intervals may miss.
_MISSED_PART = 0.05


class Estimate(NamedTuple):
    """A time with its interval of 95 %, ns."""

    time_ns: float
    lower_ns: float
    upper_ns: float


def choose_part(samples_ns: Sequence[Sequence[int]]) -> float:
    """Return which quantile to take of the samples of all sizes, which are in the order of their sizes.

    The lower quartile: what disturbs a launch only adds to its time, so that the upper half of the rounds tells of the
    machine, and the least sample is a single one that falls with the number of rounds. Where others use the machine,
    though, times have two modes, with all of its processors and with half of them, and any quantile that falls between
    the modes jumps from one to the other as chance has it. Then it is the eighth or the median, if neighbouring sizes
    differ less than half as much with it. That knows nothing of a tile, and is the same for all sizes.
    """
    rough = {part: roughness_ratio([estimate(each, part).time_ns for each in samples_ns]) for part in _PARTS}
    best = min(rough, key=lambda part: rough[part])
    return best if rough[best] < _BETTER_RATIO * rough[QUARTILE] else QUARTILE


def estimate(samples_ns: Sequence[int], part: float = QUARTILE) -> Estimate:
    """Return a quantile of the samples, and between which of them it lies.

    The interval holds with 95 % whatever the distribution: from sample l to sample u in their order, where of n rounds
    at least l and fewer than u lie below the quantile, by the binomial distribution of n and the part. Of few rounds
    even the least may lie above a low quantile (of the quartile, of fewer than 13); it is the lower end then.

    *Source*: H. A. David and H. N. Nagaraja, Order Statistics, 3rd edition, 2003, section 7.1.
    """
    ordered = sorted(samples_ns)
    place = part * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    time_ns = ordered[low] + (place - low) * (ordered[high] - ordered[low])
    first, last = _ranks(len(ordered), part)
    return Estimate(time_ns=time_ns, lower_ns=float(ordered[first - 1]), upper_ns=float(ordered[last - 1]))


@cache
def _ranks(n: int, part: float) -> tuple[int, int]:
    """Return the ranks, from 1 on, of the samples that bound a quantile."""
    shares = [_share(n, below, part) for below in range(n + 1)]
    n_low = bisect_right(list(accumulate(shares)), _MISSED_PART / 2)
    n_high = bisect_right(list(accumulate(reversed(shares))), _MISSED_PART / 2)
    return max(n_low, 1), min(n + 1 - n_high, n)


def _share(n: int, below: int, part: float) -> float:
    """Return the chance that so many of n samples lie below; by logarithms, for the factors are beyond floats."""
    ways = math.lgamma(n + 1) - math.lgamma(below + 1) - math.lgamma(n - below + 1)
    return math.exp(ways + below * math.log(part) + (n - below) * math.log1p(-part))
