"""Finds steps in a series of nightly times: where the level changed and stayed.

Nothing here knows of runs or cases; `perfsuite.verdict.change_points` does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from perfsuite.verdict.significance import Change, compare_samples

#: A normal deviation is so many median absolute deviations.
_DEVIATIONS_PER_MAD = 1.4826

#: Nights are never taken to be quieter than this: a timer's resolution must not make every digit a step.
_LEAST_NOISE = 0.002

#: A single night counts for no more than so many deviations from its neighbours' median.
_CLIP_DEVIATIONS = 3.0
_CLIP_WINDOW = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDesign:
    """How much evidence a step needs; `tools/simulate_history.py` says what follows from it.

    Raises ValueError: a night alone would be a level, or an effect or an error is not between 0 and 1.
    """

    #: A level lasts at least so many nights; so many must have passed since a change before it is reported.
    least_nights: int = 4
    #: What a further step must take off the squared deviations, in variances of a night times log(nights).
    penalty: float = 6.0
    #: A smaller change is not reported; below the 5 % that matter, so that those are not missed by chance.
    least_effect_ratio: float = 0.03
    #: Of the rank test between neighbouring levels, one-sided.
    alpha: float = 0.0005
    #: Of each level, no more nights than these next to the step are compared.
    most_nights: int = 30

    def __post_init__(self) -> None:
        if self.least_nights < 2 or self.most_nights < self.least_nights:
            raise ValueError(f"nights of a level are {self.least_nights} to {self.most_nights}, expected 2 or more")
        if not 0.0 < self.least_effect_ratio < 1.0 or not 0.0 < self.alpha < 0.5 or not self.penalty > 0.0:
            raise ValueError(f"expected a penalty above 0, an effect below 1, an error below 0.5, got {self}")

    @property
    def least_series(self) -> int:
        """Nights below which nothing can be known: not even the clearest order of them is evidence at `alpha`."""
        return next(n for n in count(2 * self.least_nights) if math.comb(n, n // 2) * self.alpha >= 1.0)

    @property
    def least_before(self) -> int:
        """Nights that must precede a change for it to be reported after `least_nights`; with fewer it takes longer."""
        least = self.least_nights
        return next(n for n in count(least) if math.comb(n + least, least) * self.alpha >= 1.0)


STANDARD_STEPS = StepDesign()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A change of the level between two nights."""

    index: int
    #: Where the neighbouring levels begin and end, as they were compared: [first, index) and [index, end).
    first: int
    end: int
    #: New level over old; the bounds hold one-sided at 99 %.
    change: Change


def find_steps(times_ns: Sequence[float], design: StepDesign = STANDARD_STEPS) -> tuple[Step, ...]:
    """Find the nights at which the level of a series changed and stayed.

    The logarithms of the times, each no further than three deviations from the median of its neighbours, are cut into
    levels by exact minimisation of the squared deviations plus a penalty for each cut. The penalty is
    ``c * sigma^2 * log(n)``: c = 2 is Schwarz's criterion for one series that is looked at once, with a mean and a
    place for each level; c = 6 pays for looking every night, and for noise that is not normal. Sigma is the median
    absolute deviation of the differences between neighbouring nights, which neither steps nor outliers move, as a
    normal deviation over sqrt(2). A cut is reported where the medians of its neighbouring levels differ by
    `least_effect_ratio` at least, and an exact rank test excludes at `alpha` that they are one. Times that are
    infinite, none, or not above 0 are no nights.

    Source: Killick, Fearnhead and Eckley, 'Optimal detection of changepoints with a linear computational cost', JASA
    107 (2012), sections 2.2 (optimal partitioning) and 3 (pruning).
    """
    places = [place for place, time_ns in enumerate(times_ns) if 0.0 < time_ns < math.inf]
    found = _steps_of([times_ns[place] for place in places], design)
    return tuple(
        replace(step, index=places[step.index], first=places[step.first], end=places[step.end - 1] + 1)
        for step in found
    )


def _steps_of(times_ns: Sequence[float], design: StepDesign) -> tuple[Step, ...]:
    if len(times_ns) < design.least_series:
        return ()
    logs = np.log(np.asarray(times_ns, dtype=float))
    noise = noise_of(logs)
    cuts = _cuts(_clipped(logs, noise), noise, design)
    neighbours = zip(cuts, cuts[1:], cuts[2:], strict=False)
    found = (_confirmed(times_ns, before, cut, after, design) for before, cut, after in neighbours)
    return tuple(step for step in found if step is not None)


def noise_of(logs: NDArray[np.float64]) -> float:
    """Return the deviation of a single night, as a log ratio, that the differences between neighbours show."""
    spread = float(np.median(np.abs(np.diff(logs)))) * _DEVIATIONS_PER_MAD / math.sqrt(2.0)
    return max(spread, _LEAST_NOISE)


def _clipped(logs: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    half = _CLIP_WINDOW // 2
    padded = np.pad(logs, half, mode="reflect")
    middle = np.median(np.lib.stride_tricks.sliding_window_view(padded, _CLIP_WINDOW), axis=1)
    reach = _CLIP_DEVIATIONS * noise
    return np.asarray(np.clip(logs, middle - reach, middle + reach))


def _cuts(logs: NDArray[np.float64], noise: float, design: StepDesign) -> list[int]:
    penalty = design.penalty * noise**2 * math.log(len(logs))
    sums = np.concatenate(([0.0], np.cumsum(logs - logs.mean())))
    return _best_cuts(sums, penalty, design.least_nights)


def _best_cuts(sums: NDArray[np.float64], penalty: float, least: int) -> list[int]:
    """Return the cheapest cuts into levels of `least` nights or more, of which the last ends at each night in turn."""
    n = len(sums) - 1
    inverse = 1.0 / np.arange(n, 0, -1)  # of the length of a level that begins at 0, 1, ... and ends at n
    costs = np.full(n + 1, np.inf)
    costs[0] = -penalty
    before, firsts, first = [0] * (n + 1), [0] * (n + least + 1), 0
    for end in range(least, n + 1):
        first = max(first, firsts[end])
        starts = slice(first, end - least + 1)
        by_start = costs[starts] - (sums[end] - sums[starts]) ** 2 * inverse[n - end + first : n - least + 1]
        best = int(by_start.argmin())
        before[end], costs[end] = first + best, by_start[best] + penalty
        if by_start[0] >= costs[end]:  # from `end` + `least` on, what begins there is never better than a cut at `end`
            firsts[end + least] = first + int((by_start < costs[end]).argmax())
    cuts = [n]
    while cuts[-1]:
        cuts.append(before[cuts[-1]])
    return cuts[::-1]


def _confirmed(times_ns: Sequence[float], before: int, cut: int, after: int, design: StepDesign) -> Step | None:
    first, end = max(before, cut - design.most_nights), min(after, cut + design.most_nights)
    old, new = times_ns[first:cut], times_ns[cut:end]
    if math.comb(len(old) + len(new), len(old)) * design.alpha < 1.0:
        return None  # even the clearest order of so few nights is no evidence
    seen = compare_samples(old, new, session_spread_ratio=0.0, confidence=1.0 - design.alpha)
    is_sure = seen.lower_ratio > 1.0 or seen.upper_ratio < 1.0
    if not is_sure or abs(math.log(seen.estimate_ratio)) < math.log1p(design.least_effect_ratio):
        return None
    change = compare_samples(old, new, session_spread_ratio=0.0)
    return Step(index=cut, first=first, end=end, change=change)
