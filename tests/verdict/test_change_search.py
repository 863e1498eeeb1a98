"""Searches over simulated builds: where the time changed, how sure that is, and what cannot be said."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import median

import numpy as np
import pytest

from perfsuite.verdict.change_search import ChangeSearch, Searched, UnusableBuildError

#: The noise of a pair, with tails as those of real pairs, and how far two builds are apart that are the same.
_NOISE_RATIO, _TAIL, _LAYOUT_RATIO = 0.015, 4.0, 0.001

Changes = Sequence[tuple[int, float]]


class Builds:
    """Simulated builds, each change from its place on."""

    def __init__(self, changes: Changes, seed: int = 1, n_builds: int = 64, broken: Sequence[int] = ()) -> None:
        self._random = np.random.default_rng(seed)
        self._levels = _LAYOUT_RATIO * self._random.standard_normal(n_builds)
        for place, ratio in changes:
            self._levels[place:] += math.log1p(ratio)
        self._broken = broken
        self.measured: set[int] = set()

    def take(self, old: int, new: int, n_pairs: int) -> list[float]:
        for build in (old, new):
            if build in self._broken:
                raise UnusableBuildError(build)
            self.measured.add(build)
        noise = _NOISE_RATIO * self._random.standard_t(_TAIL, n_pairs)
        ratios: list[float] = np.exp(self._levels[new] - self._levels[old] + noise).tolist()
        return ratios

    def search(self, **options: float) -> Searched:
        return ChangeSearch(n_builds=len(self._levels), take=self.take, **options).run()  # type: ignore[arg-type]


def _is_right(found: Searched, changes: Changes) -> bool:
    return [(point.before, point.after) for point in found.points] == sorted((at - 1, at) for at, _ in changes)


def test_the_place_is_found() -> None:
    """With how much it was, the chance that it is another, and few of the builds made."""
    builds = Builds([(40, 0.03)])
    found = builds.search()
    (point,) = found.points
    assert (point.before, point.after) == (39, 40)
    assert point.lower_ratio < 1.03 < point.upper_ratio
    assert point.lower_ratio <= point.ratio <= point.upper_ratio
    assert 0.0 < point.wrong_ratio <= 0.05
    assert (found.undecided, found.unusable) == ((), ())
    assert len(builds.measured) <= 8


@pytest.mark.parametrize(
    "changes", [[(5, 0.05), (50, 0.05)], [(20, 0.10), (21, -0.05)], [(9, 0.04), (30, 0.04), (60, 0.04)], [(7, -0.2)]]
)
def test_several_places_are_found_as_several(changes: Changes) -> None:
    assert _is_right(Builds(changes).search(), changes)


def test_nothing_is_found_where_nothing_changed() -> None:
    found = [Builds([], seed).search() for seed in range(40)]
    assert sum(bool(each.points) for each in found) <= 2
    assert median(each.n_pairs for each in found) < 60


@pytest.mark.long
def test_ninety_five_of_a_hundred_are_right() -> None:
    """One change of 3 % in 64 builds, 200 times, and two of them, 50 times."""
    one, two = [], []
    for seed in range(200):
        places = random.Random(seed).sample(range(1, 64), 2)
        one.append(_is_right(Builds([(places[0], 0.03)], seed).search(), [(places[0], 0.03)]))
        if seed < 50:
            both = [(place, 0.03) for place in places]
            two.append(_is_right(Builds(both, seed).search(), both))
    assert sum(one) >= 190
    assert sum(two) >= 45


def test_a_build_that_cannot_be_measured_is_left_out() -> None:
    found = Builds([(40, 0.05)], broken=(31, 32, 40)).search()
    (point,) = found.points
    assert (point.before, point.after) == (39, 41)
    assert set(found.unusable) & {31, 32, 40} == set(found.unusable)
    assert 40 in found.unusable


def test_what_cannot_be_decided_is_said() -> None:
    with pytest.raises(UnusableBuildError) as raised:
        Builds([(3, 0.05)], broken=(63,)).search()
    assert raised.value.args == (63,)
    found = Builds([(40, 0.01)]).search(most_pairs=4)
    assert found.points == ()
    assert found.undecided == ((0, 63),)


def test_changes_that_cancel_are_found_in_stretches() -> None:
    """From the ends alone nothing must be seen."""
    changes = [(20, 0.06), (44, -0.0566)]
    assert Builds(changes).search().points == ()
    assert _is_right(Builds(changes).search(n_stretches=4), changes)
    assert _is_right(Builds([(1, 0.05)], n_builds=3).search(n_stretches=2), [(1, 0.05)])
