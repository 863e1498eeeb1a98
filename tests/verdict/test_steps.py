"""Steps in a series of nights."""

from __future__ import annotations

import math
import random
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from perfsuite.verdict import steps
from perfsuite.verdict.steps import STANDARD_STEPS, find_steps


def nights(n_nights: int, seed: int = 0, spread: float = 0.01) -> list[float]:
    """Nights of 5 ms that differ by so much."""
    chance = random.Random(seed)
    return [5e6 * math.exp(chance.gauss(0.0, spread)) for _ in range(n_nights)]


def slower(times_ns: list[float], first: int, ratio: float = 1.05, end: int | None = None) -> list[float]:
    last = len(times_ns) if end is None else end
    return [time * ratio if first <= night < last else time for night, time in enumerate(times_ns)]


def test_a_step_is_found_at_its_night() -> None:
    (step,) = find_steps(slower(nights(40), 25))
    assert step.index == 25
    assert step.change.lower_ratio < 1.05 < step.change.upper_ratio
    assert (step.first, step.end) == (0, 40)
    (step,) = find_steps(slower(nights(40), 25, ratio=0.95))
    assert step.change.upper_ratio < 1.0
    assert [step.index for step in find_steps(slower(nights(50), 20, end=30))] == [20, 30]


def test_a_step_needs_enough_nights_before_and_after_it() -> None:
    """After three nights a change is not reported, after four it is, where 13 precede it."""
    times_ns = slower(nights(40, spread=0.005), 30)
    assert [len(find_steps(times_ns[: 30 + n_since])) for n_since in range(1, 6)] == [0, 0, 0, 1, 1]
    least = STANDARD_STEPS.least_series
    assert (least, find_steps(slower(nights(least), least // 2, ratio=2.0)[: least - 1])) == (14, ())
    assert len(find_steps(slower(nights(least), least // 2, ratio=2.0))) == 1
    n_before = STANDARD_STEPS.least_before
    assert (n_before, len(find_steps(slower(nights(n_before + 4), n_before, ratio=2.0)))) == (13, 1)
    assert find_steps(slower(nights(n_before + 3), n_before - 1, ratio=2.0)) == ()


def test_single_nights_and_small_changes_are_no_step() -> None:
    """Nights that are half as slow again here and there are no level; a change of 1 % is sure, and does not matter."""
    times_ns = nights(40)
    for night in (8, 21, 39):
        times_ns[night] *= 1.5
    assert find_steps(times_ns) == ()
    assert find_steps(slower(nights(60, spread=0.001), 30, ratio=1.01)) == ()


@pytest.mark.parametrize("times_ns", [[], [5e6] * 60, [5e6] * 13])
def test_nights_that_are_all_alike_have_no_step(times_ns: list[float]) -> None:
    assert find_steps(times_ns) == ()


def test_most_changes_of_5_percent_are_found_within_7_nights() -> None:
    """With nights that differ by 1 %, 19 of 20 histories show the change in time, each night judged by itself."""
    found = 0
    for seed in range(40):
        night = random.Random(seed).randrange(14, 50)
        times_ns = slower(nights(60, seed=seed), night)
        reported = [step for end in range(night + 1, night + 8) for step in find_steps(times_ns[:end])]
        found += any(abs(step.index - night) <= 3 for step in reported)
    assert found >= 38


@pytest.mark.parametrize("spread", [0.01, 0.03, 0.12])
def test_few_histories_without_a_change_are_reported_one(spread: float) -> None:
    """However noisy nights are, at most 4 of 40 histories of 60 nights show a change on any night."""
    alarms = sum(
        any(find_steps(nights(60, seed=seed, spread=spread)[:end]) for end in range(14, 61)) for seed in range(40)
    )
    assert alarms <= 4


@pytest.mark.parametrize("bad_ns", [0.0, -5.0, math.nan, math.inf])
def test_what_is_no_time_is_no_night(bad_ns: float) -> None:
    nights = [100.0 + 0.1 * (night % 3) for night in range(20)] + [110.0 + 0.1 * (night % 3) for night in range(20)]
    (step,) = find_steps([*nights[:5], bad_ns, *nights[5:], bad_ns])
    assert (step.index, step.end, find_steps([bad_ns] * 40)) == (21, 41, ())


def cheapest(logs: list[float], penalty: float, least: int) -> float:
    array = np.array(logs)

    @cache
    def cost(end: int) -> float:
        starts = [0, *range(least, end - least + 1)]
        return min((cost(first) + penalty if first else 0.0) + _squares(array[first:end]) for first in starts)

    return cost(len(logs))


def _squares(level: np.ndarray) -> float:
    return float(((level - level.mean()) ** 2).sum())


def test_the_cuts_are_the_cheapest_that_there_are() -> None:
    """On 60 series with up to three steps, no other levels cost less."""
    chance = random.Random(4)
    for _ in range(60):
        logs = [chance.gauss(0.0, 0.01) for _ in range(chance.randrange(14, 70))]
        for _ in range(chance.randrange(4)):
            first, reach = chance.randrange(len(logs)), chance.gauss(0.0, 0.03)
            logs = [log + reach * (night >= first) for night, log in enumerate(logs)]
        array = np.array(logs)
        noise = steps.noise_of(array)
        penalty, least = 6.0 * noise**2 * math.log(len(logs)), 4
        cuts = steps._cuts(array, noise, STANDARD_STEPS)
        told = sum(_squares(array[first:end]) for first, end in pairwise(cuts))
        assert told + penalty * (len(cuts) - 2) == pytest.approx(cheapest(logs, penalty, least), rel=1e-9, abs=1e-12)
