"""What a sweep shows of a tile: the steps at its multiples, their distance, and how well efficiency follows."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from perfsuite.experiments.shapes.sweep_jumps import LEAST_SIZES, penalty
from perfsuite.experiments.shapes.sweep_record import Jump, TileSteps

#: One-sided 95 %, in standard deviations.
_SURE_DEVIATIONS = 1.645

#: Deviations of a single time from which on a jump is steep enough to be seen for sure.
_STEEP_DEVIATIONS = 3.5

#: How well jumps must lie at the multiples of a period, and its multiples at jumps, from which on it is one. Where a
#: period has more than 3 multiples for 2 jumps, it cannot be reached.
_LEAST_FIT_RATIO = 0.8
_MOST_MULTIPLES_A_JUMP = 1.5


def compare_steps(jumps: Sequence[Jump], sizes: Sequence[int], step: int, noise_ratios: Sequence[float]) -> TileSteps:
    """Hold the jumps against the multiples of a tile inside the sizes.

    A multiple counts when it has three sizes at either side. Of those without a jump it is said whether the noise would
    have hidden one of the height that the tile makes there, `step` of that size; noise is given for each size.
    """
    rises = [jump for jump in jumps if jump.height_ns > 0.0]
    multiples = list(_multiples(sizes, step))
    found = tuple(each for each in multiples if any(_is_at(jump, each) for jump in rises))
    others = [each for each in multiples if each not in found]
    hidden = tuple(each for each in others if _is_hidden(sizes, each, step, noise_ratios))
    return TileSteps(
        step=step,
        found=found,
        missed=tuple(each for each in others if each not in hidden),
        hidden=hidden,
        extra=tuple(jump.size for jump in rises if not any(_is_at(jump, each) for each in multiples)),
    )


def period_of(jumps: Sequence[Jump], sizes: Sequence[int]) -> int | None:
    """Return the distance at whose multiples the jumps up are; None where they have none, or are fewer than two.

    Of all whole distances that one with the best harmonic mean of two shares: that of the jumps, by their heights, that
    lie at its multiples, and that of its multiples that have a jump; the largest of equals.
    """
    rises = [jump for jump in jumps if jump.height_ns > 0.0]
    if len(rises) < 2:
        return None
    periods = np.arange(max(jump.next_size for jump in rises) - 1, 0, -1)
    n_multiples = _n_multiples(sizes, sizes[0], sizes[-1], periods)
    periods = periods[(n_multiples > 0) & (n_multiples <= _MOST_MULTIPLES_A_JUMP * len(rises))]
    fits = _fit_ratios(rises, sizes, periods)
    best = int(fits.argmax()) if fits.size else 0
    return int(periods[best]) if fits.size and fits[best] >= _LEAST_FIT_RATIO else None


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Spearman's coefficient; None where a series is constant or shorter than three.

    Of efficiencies it tells whether each tooth of the saw is where the tile puts it. Of times it tells next to nothing,
    for any two series that grow agree in their ranks: a straight line against a staircase of eight steps has 0.99.
    """
    if len(first) < LEAST_SIZES or len(set(first)) == 1 or len(set(second)) == 1:
        return None
    from scipy.stats import spearmanr  # takes a third of a second to load

    return float(spearmanr(first, second).statistic)


def _multiples(sizes: Sequence[int], step: int) -> range:
    if len(sizes) < 2 * LEAST_SIZES:
        return range(0)
    return range(-(-sizes[LEAST_SIZES - 1] // step) * step, sizes[-LEAST_SIZES], step)


def _is_at(jump: Jump, multiple: int) -> bool:
    return jump.size <= multiple < jump.next_size


def _is_hidden(sizes: Sequence[int], multiple: int, step: int, noise_ratios: Sequence[float]) -> bool:
    """Whether a jump by `step` of `multiple` could go unseen.

    Between two flat pieces of p sizes a straight line leaves ``p (height / sigma)^2 / 8`` squared deviations, which
    scatter by twice their root; a jump is seen for sure where that, less 1.6 scatters, is worth a piece of its own, and
    where the three sizes at either side of it lie clearly apart.
    """
    n_before = bisect_right(sizes, multiple) - bisect_right(sizes, multiple - step)
    n_after = bisect_right(sizes, multiple + step) - bisect_left(sizes, multiple + 1)
    deviations = step / multiple / noise_ratios[bisect_right(sizes, multiple) - 1]
    left_over = min(n_before, n_after) * deviations**2 / 8.0
    is_worth_a_piece = left_over - _SURE_DEVIATIONS * 2.0 * math.sqrt(left_over) >= penalty(len(sizes))
    return not is_worth_a_piece or deviations < _STEEP_DEVIATIONS


def _fit_ratios(rises: Sequence[Jump], sizes: Sequence[int], periods: Any) -> Any:
    at_ns, n_with = 0.0 * periods, 0 * periods
    for jump in rises:
        n_here = _n_multiples(sizes, jump.size, jump.next_size, periods)
        at_ns += (n_here > 0) * jump.height_ns
        n_with += n_here
    precision = at_ns / sum(jump.height_ns for jump in rises)
    recall = n_with / _n_multiples(sizes, sizes[0], sizes[-1], periods)
    return 2.0 * precision * recall / (precision + recall + (n_with == 0))


def _n_multiples(sizes: Sequence[int], first: int, beyond: int, periods: Any) -> Any:
    """Return how many multiples of each period lie from `first` on, below `beyond`, with three sizes at either side."""
    if len(sizes) < 2 * LEAST_SIZES:
        return 0 * periods
    first, beyond = max(first, sizes[LEAST_SIZES - 1]), min(beyond, sizes[-LEAST_SIZES])
    return (beyond - 1) // periods - (first - 1) // periods if first < beyond else 0 * periods
