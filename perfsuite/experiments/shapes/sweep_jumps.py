"""Steps in a series of times over sizes, found from the times alone.

The series is cut into pieces, each a straight line of its own, such that ``sum of ((time - line) / sigma)^2 + penalty *
pieces`` is least (optimal partitioning); sigma is a share of the time, the noise. A straight series is one piece, and a
bend is no step: a jump is where two neighbouring lines miss each other by more than their errors allow.

*Source*: B. Jackson et al., An algorithm for optimal partitioning of data on an interval, IEEE Signal Processing
Letters 12, 2005, for the search.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfsuite.experiments.shapes.sweep_record import Jump, TileSteps

Floats = NDArray[np.float64]

#: Fewest sizes that make a step; a line through two lies on both.
LEAST_SIZES = 3

#: Nothing is measured better than this share of its time: clocks tick, and buffers lie elsewhere.
_LEAST_NOISE_RATIO = 1e-3

#: Times whose noise is taken together: a sweep is disturbed in parts, and long launches more than short ones.
_AROUND = 25

#: A normal distribution's standard deviation over its median absolute deviation.
_DEVIATION_PER_MAD = 1.4826

#: Standard errors by which two lines must miss each other.
_LEAST_ERRORS = 4.0

#: Deviations of a single time below which a jump is none that could be seen.
_LEAST_DEVIATIONS = 2.5

#: Part of the height that lies between the three sizes before and the three behind: the rest is a bend.
_LEAST_SHARP_PART = 0.5

#: Deviations from both neighbours beyond which a single time is a disturbance.
_OUTLIER_DEVIATIONS = 4.0


def penalty(n_points: int) -> float:
    """Return what a further piece must explain, in squared standard deviations: 4 ln(points).

    A piece has three parameters, its place, level and slope, for which the Schwarz criterion asks 3 ln(points); one
    more keeps a straight line of 512 noisy points whole in more than 99 of 100 sweeps.
    """
    return 4.0 * math.log(max(n_points, 2))


def noise_ratio(times_ns: Sequence[float]) -> float:
    """Return the standard deviation of a time about its neighbours, as a share of it.

    The median of ``|t[i-1] - 2 t[i] + t[i+1]| / (sqrt(6) t[i])``, scaled to a standard deviation: slopes and most steps
    cancel from it. It has the noise of the rounds in it, and what differs from size to size besides.
    """
    bends = _bends(times_ns)
    if not bends.size:
        return _LEAST_NOISE_RATIO
    return max(_LEAST_NOISE_RATIO, _median(bends))


def roughness_ratio(times_ns: Sequence[float]) -> float:
    """Return the mean of what `noise_ratio` is the median of: a few sizes that stand out count as well."""
    bends = _bends(times_ns)
    return float(bends.mean()) if bends.size else 0.0


def local_noise_ratios(times_ns: Sequence[float]) -> tuple[float, ...]:
    """Return the noise about each time: that of the 25 around it, or of all where that is more."""
    bends, least = _bends(times_ns), noise_ratio(times_ns)
    if not bends.size:
        return (least,) * len(times_ns)
    firsts = (min(max(0, place - 1 - _AROUND // 2), max(0, bends.size - _AROUND)) for place in range(len(times_ns)))
    return tuple(max(least, _median(bends[first : first + _AROUND])) for first in firsts)


def _bends(times_ns: Sequence[float]) -> Floats:
    """Return each time's distance from its neighbours, scaled so that their median is a standard deviation."""
    times = np.asarray(times_ns, dtype=np.float64)
    return _DEVIATION_PER_MAD / math.sqrt(6.0) * np.abs(np.diff(times, 2)) / times[1:-1]


def find_jumps(sizes: Sequence[int], times_ns: Sequence[float]) -> tuple[Jump, ...]:
    """Return the jumps between neighbouring sizes, up or down; none where there are fewer than six sizes."""
    if len(sizes) < 2 * LEAST_SIZES:
        return ()
    noise = np.asarray(local_noise_ratios(times_ns))
    times = _without_outliers(np.asarray(times_ns, dtype=np.float64), noise)
    lines = _Lines(np.asarray(sizes, dtype=np.float64), times, noise * times)
    starts = [*_starts(lines, penalty(len(sizes))), len(sizes)]
    return tuple(_jumps(lines, sizes, starts, noise))


def _jumps(lines: _Lines, sizes: Sequence[int], starts: Sequence[int], noise: Floats) -> Iterator[Jump]:
    for (first, middle), (_, last) in pairwise(pairwise(starts)):
        at = (sizes[middle - 1] + sizes[middle]) / 2.0
        before, after = lines.fitted(first, middle, at), lines.fitted(middle, last, at)
        height = after.level - before.level
        errors = _LEAST_ERRORS * math.hypot(before.error, after.error)
        sharp = math.copysign(1.0, height) * lines.rise(middle, (before.slope + after.slope) / 2.0)
        least = max(errors, _LEAST_DEVIATIONS * noise[middle] * before.level)
        if before.level > 0.0 and abs(height) > least and sharp > _LEAST_SHARP_PART * abs(height):
            yield Jump(
                size=sizes[middle - 1], next_size=sizes[middle], height_ns=height, height_ratio=height / before.level
            )


def _without_outliers(times: Floats, noise: Floats) -> Floats:
    """Put the median of three in the place of a time that both neighbours are far from; steps stay as they are."""
    middles = times.copy()
    middles[1:-1] = np.median(np.stack([times[:-2], times[1:-1], times[2:]]), axis=0)
    is_outlier = np.abs(times - middles) > _OUTLIER_DEVIATIONS * noise * middles
    return np.where(is_outlier, middles, times)


def _starts(lines: _Lines, piece_cost: float) -> list[int]:
    n = lines.n_points
    best = np.full(n + 1, np.inf)
    best[0] = -piece_cost
    cut = np.zeros(n + 1, dtype=np.int64)
    for end in range(LEAST_SIZES, n + 1):
        costs = best[: end - LEAST_SIZES + 1] + lines.misfits(end) + piece_cost
        cut[end] = int(np.argmin(costs))
        best[end] = costs[cut[end]]
    starts = [n]
    while starts[-1] > 0:
        starts.append(int(cut[starts[-1]]))
    return starts[:0:-1]


class _Fitted(NamedTuple):
    """A line at one place, with the standard error of its level there."""

    level: float
    error: float
    slope: float


class _Lines:
    """Weighted straight lines through any run of the points, from cumulated sums."""

    def __init__(self, x: Floats, y: Floats, sigma: Floats) -> None:
        self.n_points, self._x, self._y = x.size, x, y
        self._middle = (float(x.mean()), float(y.mean()))
        x, y, weight = x - self._middle[0], y - self._middle[1], sigma**-2.0
        self._sums = [np.concatenate([[0.0], np.cumsum(weight * each)]) for each in (x**0.0, x, y, x * x, x * y, y * y)]

    def misfits(self, end: int) -> Any:
        """Return the weighted squares that lines through the points from each start to `end` leave."""
        _, _, _, xx, xy, yy = self._moments(np.arange(end - LEAST_SIZES + 1), end)
        return np.maximum(yy - xy * xy / xx, 0.0)

    def fitted(self, start: int, end: int, at: float) -> _Fitted:
        weight, x, y, xx, xy, _ = self._moments(start, end)
        away = at - self._middle[0] - x
        slope = float(xy / xx)
        level = float(self._middle[1] + y + slope * away)
        return _Fitted(level=level, error=math.sqrt(1.0 / weight + away * away / xx), slope=slope)

    def rise(self, middle: int, slope: float) -> float:
        """Return by how much the median of the three points from `middle` on is above that of those before.

        What a slope makes of it is taken off.
        """
        before, after = (slice(middle - LEAST_SIZES, middle), slice(middle, middle + LEAST_SIZES))
        apart_x, apart_y = (_median(each[after]) - _median(each[before]) for each in (self._x, self._y))
        return apart_y - slope * apart_x

    def _moments(self, start: Any, end: int) -> tuple[Any, ...]:
        weight, x, y, xx, xy, yy = (sums[end] - sums[start] for sums in self._sums)
        return weight, x / weight, y / weight, xx - x * x / weight, xy - x * y / weight, yy - y * y / weight


def _median(values: Floats) -> float:
    return float(np.median(values))


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

    A multiple counts when it has three sizes at either side. For those without a jump it is stated whether the noise
    would have hidden one of the height that the tile makes there, `step` of that size; noise is given for each size.
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

    It is the whole distance with the best harmonic mean of two shares: that of the jumps, by their heights, that
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
