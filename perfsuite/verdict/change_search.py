"""Which of many builds in order changed a case's time: a search in which pairs are asked for until the odds suffice."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

#: Takes so many pairs of two builds, by their places, and returns the ratios of their times, new over old.
TakePairs = Callable[[int, int, int], Sequence[float]]

#: Changes that are thought of are logarithms of ratios in so many steps to either side, at least this far and twice as
#: far as any pair.
_LEAST_REACH, _N_STEPS = 0.1, 400
#: What did not change moves by about this share of the least change all the same: no two builds are laid out alike.
_STILL_SHARE = 0.25
#: What is thought of how large a change is before anything is measured: usually about so much.
_USUAL = 0.1
#: Of the chances of a segment that changed: both of its halves did.
_BOTH = 0.1
#: A second change point is looked for where it is at least this share of the whole change.
_LEAST_SHARE = 0.2
#: The noise of one pair before any was taken, and how many pairs that is worth; tails are those of Student's t.
_NOISE, _N_NOISE, _TAIL = 0.02, 4, 4.0
#: What is less likely than the likeliest by this factor's logarithm adds nothing.
_LEAST_LOG = 25.0
_MAD = 1.4826
_FIRST, _MORE, _MOST_PAIRS = 4, 2, 120


class UnusableBuildError(Exception):
    """A build cannot be measured; the argument is its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """A place at which the time changed."""

    #: The last build that has the old time, and the first that has the new one; those between cannot be measured.
    before: int
    after: int
    #: New over old, with bounds that hold it in 95 of 100 cases.
    ratio: float
    lower_ratio: float
    upper_ratio: float
    #: The chance that it lies elsewhere.
    wrong_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """What a search came to."""

    points: tuple[ChangePoint, ...]
    #: Segments of which nobody knows, for the pairs did not decide: the builds at their ends.
    undecided: tuple[tuple[int, int], ...]
    n_pairs: int
    unusable: tuple[int, ...]


@dataclass(kw_only=True)
class ChangeSearch:
    """Searches `n_builds` builds for the places at which a time changed by `least_ratio` or more.

    The first and the last build are compared first. Where they differ, one between them is compared with both, until
    the chance that the change is in one half, or that each half has one, is large enough; and so on with that half.
    A pair's noise is Student's t of four degrees of freedom, as wide as all pairs of the search show. Each decision may
    be wrong with an equal part of `wrong_ratio`, so that a change point is wrong with `wrong_ratio` at most.

    Changes that cancel each other between the ends are not found, unless the builds are searched in several stretches,
    each by itself.
    """

    n_builds: int
    take: TakePairs
    least_ratio: float = 0.01
    wrong_ratio: float = 0.05
    #: So many stretches, of about as many builds each, are searched by themselves.
    n_stretches: int = 1
    #: Whether a build is at hand; another takes its time to be made.
    is_made: Callable[[int], bool] = lambda build: True
    most_pairs: int = _MOST_PAIRS
    _unusable: set[int] = field(default_factory=set)
    _residuals: list[_Floats] = field(default_factory=list)
    _n_pairs: int = 0

    def run(self) -> Searched:
        """Search; a build that raises `UnusableBuildError` is left out, unless it is the first or the last."""
        points: list[ChangePoint] = []
        undecided: list[tuple[int, int]] = []
        open_segments: list[_Segment] = []
        for first, last in self._stretches():
            whole, chance = self._compare_ends(first, last)
            if chance > 1.0 - self._each:
                open_segments.append(whole)
            elif chance >= self._each:
                undecided.append((first, last))
        while open_segments:
            segment = open_segments.pop()
            halves = self._split(segment)
            if halves is None:
                undecided.append((segment.first, segment.last))
            elif not halves:
                points.append(self._point(segment))
            else:
                open_segments += halves
        return Searched(
            points=tuple(sorted(points, key=lambda point: point.after)),
            undecided=tuple(sorted(undecided)),
            n_pairs=self._n_pairs,
            unusable=tuple(sorted(self._unusable)),
        )

    @property
    def _each(self) -> float:
        return self.wrong_ratio / (self.n_stretches + math.ceil(math.log2(max(2, self.n_builds - 1))))

    def _stretches(self) -> Iterator[tuple[int, int]]:
        """Return the ends of what is searched by itself; each end but the outermost belongs to two."""
        ends = [round(at * (self.n_builds - 1) / self.n_stretches) for at in range(self.n_stretches + 1)]
        return pairwise(dict.fromkeys(ends))

    def _compare_ends(self, first: int, last: int) -> tuple[_Segment, float]:
        across, chance = np.empty(0), 0.5
        while self._each <= chance <= 1.0 - self._each and across.size < self.most_pairs:
            across = np.append(across, self._taken(first, last, _MORE if across.size else _FIRST))
            changes = _Changes.of(across)
            likelihood = changes.likelihood(across, self._noise)
            same = _sum(likelihood + changes.still(self.least_ratio))
            changed = _sum(likelihood + changes.of_at_least(self.least_ratio))
            chance = 1.0 / (1.0 + math.exp(min(700.0, same - changed)))
        return _Segment(first, last, across), chance

    def _split(self, segment: _Segment) -> list[_Segment] | None:
        """Return the parts of a changed segment that changed; none where nothing is between its ends, None: unknown."""
        for middle in self._middles(segment):
            try:
                return self._decide(segment, middle)
            except UnusableBuildError:
                self._unusable.add(middle)
        return []

    def _middles(self, segment: _Segment) -> list[int]:
        """Return the builds between, the best first: near the middle, and made already where that is not far off."""
        center, reach = (segment.first + segment.last) / 2, (segment.last - segment.first) / 8
        return sorted(
            {*range(segment.first + 1, segment.last)} - self._unusable,
            key=lambda each: (abs(each - center) + (0.0 if self.is_made(each) else reach), each),
        )

    def _decide(self, segment: _Segment, middle: int) -> list[_Segment] | None:
        left, right = np.empty(0), np.empty(0)
        share = (middle - segment.first) / (segment.last - segment.first)
        n_more = _FIRST // 2
        while left.size + right.size < self.most_pairs:
            left = np.append(left, self._taken(segment.first, middle, n_more))
            right = np.append(right, self._taken(middle, segment.last, n_more))
            n_more = _MORE // 2
            chances = self._chances(segment, left, right, share)
            if max(chances) >= 1.0 - self._each:
                return _parts(segment, middle, left, right, chances)
        return None

    def _chances(self, segment: _Segment, left: _Floats, right: _Floats, share: float) -> tuple[float, float, float]:
        """Return the chances that the change is in the left part, in the right one, and that both have one."""
        least = max(self.least_ratio, _LEAST_SHARE * abs(math.expm1(float(np.median(segment.across)))))
        changes = _Changes.of(np.concatenate((segment.across, left, right)))
        across, on_left, on_right = (changes.likelihood(each, self._noise) for each in (segment.across, left, right))
        still, changed = changes.still(self.least_ratio), changes.of_at_least(self.least_ratio)
        both = changes.of_at_least(least)
        in_left = _sum_of_both(across, on_left + changed, on_right + still) + math.log((1.0 - _BOTH) * share)
        in_right = _sum_of_both(across, on_left + still, on_right + changed) + math.log((1.0 - _BOTH) * (1.0 - share))
        logs = np.array([in_left, in_right, _sum_of_both(across, on_left + both, on_right + both) + math.log(_BOTH)])
        chances = np.exp(logs - _sum(logs))
        return chances[0], chances[1], chances[2]

    def _taken(self, first: int, last: int, n_pairs: int) -> _Floats:
        ratios = np.log(np.asarray(self.take(first, last, n_pairs), np.float64))
        self._n_pairs += ratios.size
        if ratios.size > 1:
            self._residuals.append((ratios - np.median(ratios)) * math.sqrt(ratios.size / (ratios.size - 1)))
        return ratios

    @property
    def _noise(self) -> float:
        """The width of a pair's noise: what all pairs show, and at first what is usual."""
        if not self._residuals:
            return _NOISE
        residuals = np.abs(np.concatenate(self._residuals))
        seen = _MAD * float(np.median(residuals))
        return (_N_NOISE * _NOISE + residuals.size * seen) / (_N_NOISE + residuals.size)

    def _point(self, segment: _Segment) -> ChangePoint:
        changes = _Changes.of(segment.across)
        likelihood = changes.likelihood(segment.across, self._noise)
        below = np.cumsum(np.exp(_normed(likelihood + changes.of_at_least(self.least_ratio))))
        at = np.minimum(np.searchsorted(below, (0.025, 0.5, 0.975)), 2 * _N_STEPS)
        lower, middle, upper = changes.steps[at].tolist()
        ratios = {"ratio": math.exp(middle), "lower_ratio": math.exp(lower), "upper_ratio": math.exp(upper)}
        return ChangePoint(before=segment.first, after=segment.last, **ratios, wrong_ratio=segment.wrong_ratio)


class _Segment(NamedTuple):
    """Builds from one to another, between which the time changed."""

    first: int
    last: int
    #: Logarithms of the ratios of the pairs of its ends.
    across: _Floats
    #: The chance that one of the decisions that led to it was wrong.
    wrong_ratio: float = 0.0


def _parts(
    segment: _Segment, middle: int, left: _Floats, right: _Floats, chances: tuple[float, float, float]
) -> list[_Segment]:
    """Return the parts that changed. Where one did, the pairs across both are pairs of its own."""
    in_left, in_right, in_both = chances
    wrong_ratio = 1.0 - (1.0 - segment.wrong_ratio) * max(chances)
    is_both = in_both == max(chances)
    parts = []
    if is_both or in_left > in_right:
        across = left if is_both else np.append(segment.across, left)
        parts.append(_Segment(segment.first, middle, across, wrong_ratio))
    if is_both or in_left <= in_right:
        across = right if is_both else np.append(segment.across, right)
        parts.append(_Segment(middle, segment.last, across, wrong_ratio))
    return parts


# ---- chances, as logarithms, over a grid of changes ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Changes:
    """The changes that are thought of, in even steps; nothing changed in the middle of them."""

    steps: _Floats

    @classmethod
    def of(cls, ratios: _Floats) -> _Changes:
        reach = max(_LEAST_REACH, 2.0 * float(np.abs(ratios).max(initial=0.0)))
        return cls(steps=np.linspace(-reach, reach, 2 * _N_STEPS + 1))

    def of_at_least(self, least_ratio: float) -> _Floats:
        """Return the chance of each change where there is one; small ones are usual, large ones are no surprise."""
        chances = -np.log1p((self.steps / _USUAL) ** 2)
        return _normed(np.where(np.abs(self.steps) >= math.log1p(least_ratio) * 0.999, chances, -np.inf))

    def still(self, least_ratio: float) -> _Floats:
        """Return the chance of each change where there is none that counts."""
        return _normed(-0.5 * (self.steps / (_STILL_SHARE * least_ratio)) ** 2)

    def likelihood(self, ratios: _Floats, noise: float) -> _Floats:
        """Return for each change how likely the pairs are where it is theirs."""
        offsets = (ratios[:, None] - self.steps[None, :]) / noise
        likelihood: _Floats = -(_TAIL + 1.0) / 2.0 * np.log1p(offsets**2 / _TAIL).sum(axis=0)
        return likelihood


def _normed(logs: _Floats) -> _Floats:
    return logs - _sum(logs)


def _sum(logs: _Floats) -> float:
    most = float(logs.max())
    return most + math.log(float(np.exp(logs - most).sum()))


def _sum_of_both(across: _Floats, left: _Floats, right: _Floats) -> float:
    """Return the logarithm of the chance of two changes, summed over both; what is across them is their sum."""
    at, other = (np.flatnonzero(each > each.max() - _LEAST_LOG) for each in (left, right))
    together = np.clip(at[:, None] + other[None, :] - _N_STEPS, 0, 2 * _N_STEPS)
    return _sum((left[at][:, None] + right[other][None, :] + across[together]).ravel())
