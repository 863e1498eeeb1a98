"""The two-sample comparison."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t

from perfsuite.verdict.significance import (
    MIN_SESSIONS,
    Change,
    _arrangements,
    _bound_place,
    basis_text,
    compare_samples,
    compare_sessions,
    paired_ratio,
    spread_of,
)


def test_equal_pairs_have_the_ratio_one() -> None:
    """For 20 pairs at 95 % the 6th value from either end bounds the median (P of 5 or fewer heads is 0.0207)."""
    ratio = paired_ratio([100] * 20, [100] * 20)
    assert (ratio.median_ratio, ratio.lower_ratio, ratio.upper_ratio, ratio.n_pairs) == (1.0, 1.0, 1.0, 20)
    ratio = paired_ratio([1000] * 20, [1000 + step for step in range(20)])
    assert (ratio.lower_ratio, ratio.upper_ratio) == (pytest.approx(1.005), pytest.approx(1.014))


def test_the_upper_bound_holds_as_often_as_it_says() -> None:
    """Over 400 simulated sets with heavy tails, the true median lies above the bound in at most 5 % and a margin."""
    generator = random.Random(7)
    misses = 0
    for _ in range(400):
        noise = [generator.gauss(0, 0.03) + (0.4 if generator.random() < 0.05 else 0.0) for _ in range(60)]
        old = [100_000] * 60
        new = [round(100_000 * (1.0 + each)) for each in noise]
        misses += paired_ratio(old, new).upper_ratio < 1.0
    assert misses <= 30


Sessions = list[tuple[int, ...]]

_SESSION = st.lists(st.integers(1, 10**9), min_size=1, max_size=6).map(tuple)
_SESSIONS = st.lists(_SESSION, min_size=1, max_size=9)


def compared(old: Sequence[Sequence[float]], new: Sequence[float], spread: float = 0.15) -> Change:
    return compare_sessions(old, new, default_spread_ratio=spread)


def drawn(generator: np.random.Generator, sd: float, n_samples: int = 5) -> tuple[float, ...]:
    """A session: its own offset, and a tenth of that as noise within."""
    offset = generator.normal(0.0, sd)
    return tuple(1e6 * np.exp(offset + generator.normal(0.0, sd / 10, n_samples)))


@pytest.mark.parametrize("n_sessions", [5, 8, 20])
def test_an_unchanged_session_is_rarely_beyond_the_bound(n_sessions: int) -> None:
    generator = np.random.default_rng(n_sessions)
    n_trials = 4000
    found = [
        compared([drawn(generator, 0.02) for _ in range(n_sessions)], drawn(generator, 0.02)) for _ in range(n_trials)
    ]
    slower = sum(change.lower_ratio > 1.0 for change in found) / n_trials
    faster = sum(change.upper_ratio < 1.0 for change in found) / n_trials
    assert (slower, faster) == (pytest.approx(0.01, abs=0.005), pytest.approx(0.01, abs=0.005))


def test_a_change_beyond_the_spread_is_found() -> None:
    """Ten sessions that differ by 1 % show a slowdown of 5 % in nine of ten trials."""
    generator = np.random.default_rng(7)
    found = [
        compared(
            [drawn(generator, 0.01) for _ in range(10)], [sample * 1.05 for sample in drawn(generator, 0.01)]
        ).lower_ratio
        for _ in range(500)
    ]
    assert sum(lower > 1.0 for lower in found) > 450


def test_samples_of_one_process_do_not_narrow_the_bounds() -> None:
    generator = np.random.default_rng(1)
    trials = [[drawn(generator, 0.02, 50) for _ in range(6)] for _ in range(1000)]
    alarms = sum(compared(old, new).lower_ratio > 1.0 for *old, new in trials)
    assert alarms <= 25


def test_the_bounds_are_those_of_the_formula() -> None:
    """The bounds are the estimate less and plus t times the deviation of the medians times sqrt(1 + 1/S)."""
    medians = [1000, 1010, 990, 1030, 1005]
    logs = np.log(medians)
    reach = t.ppf(0.99, 4) * logs.std(ddof=1) * math.sqrt(1.2)
    change = compared([(value,) for value in medians], (1100,))
    assert change.estimate_ratio == pytest.approx(1100 / np.exp(logs.mean()))
    assert change.lower_ratio == pytest.approx(change.estimate_ratio * np.exp(-reach))
    assert change.upper_ratio == pytest.approx(change.estimate_ratio * np.exp(reach))


@given(_SESSIONS, _SESSION, st.randoms(use_true_random=False))
def test_the_order_of_sessions_does_not_matter(old: Sessions, new: tuple[int, ...], generator: random.Random) -> None:
    """Bounds enclose their estimate."""
    shuffled = list(old)
    generator.shuffle(shuffled)
    there, back = compared(old, new), compared(shuffled, new)
    assert there.estimate_ratio == pytest.approx(back.estimate_ratio)
    assert (there.lower_ratio, basis_text(old, 0.15)) == (pytest.approx(back.lower_ratio), basis_text(shuffled, 0.15))
    assert there.lower_ratio <= there.estimate_ratio * (1 + 1e-12)
    assert there.estimate_ratio <= there.upper_ratio * (1 + 1e-12)


@given(_SESSION, st.integers(1, 9))
def test_what_is_as_it_was_did_not_change(samples: tuple[int, ...], n_sessions: int) -> None:
    """A session that equals all stored ones has the ratio 1, within its bounds."""
    change = compared([samples] * n_sessions, samples)
    assert change.estimate_ratio == pytest.approx(1.0)
    assert change.lower_ratio <= 1.0 + 1e-9
    assert change.upper_ratio >= 1.0 - 1e-9


def test_few_sessions_are_pooled_and_constant_ones_have_no_interval() -> None:
    old: Sessions = [(100, 101, 102), (103, 104), (99,), (100,)]
    assert len(old) == MIN_SESSIONS - 1
    pooled = [sample for samples in old for sample in samples]
    assert compared(old, (120, 121)) == compare_samples(pooled, (120, 121), session_spread_ratio=0.15)
    change = compared([(100, 100)] * 5, (101,))
    assert change.lower_ratio == change.upper_ratio == pytest.approx(1.01)


def test_spreads_are_kept_apart() -> None:
    generator = np.random.default_rng(3)
    spread = spread_of([drawn(generator, 0.05, 20) for _ in range(200)])
    assert spread.within_ratio == pytest.approx(0.005, rel=0.1)
    assert spread.between_ratio == pytest.approx(0.051, rel=0.15)
    assert spread_of([(5,)]).within_ratio is spread_of([(5,)]).between_ratio is None
    assert spread_of([(5,), (6,)]).within_ratio is None
    assert spread_of([(5, 6)]).between_ratio is None
    assert spread_of([]).between_ratio is None


_SAMPLES = st.lists(st.integers(1, 10**9), min_size=1, max_size=8)


@given(_SAMPLES, _SAMPLES, st.randoms())
def test_exchanging_the_sides_inverts_the_ratio(old: list[int], new: list[int], random: object) -> None:
    """Whatever the order of samples; a set of them compared with itself has the ratio 1 within its bounds."""
    there = compare_samples(old, new, session_spread_ratio=0.02)
    back = compare_samples(new, old, session_spread_ratio=0.02)
    assert there.estimate_ratio == pytest.approx(1.0 / back.estimate_ratio)
    assert there.lower_ratio == pytest.approx(1.0 / back.upper_ratio)
    shuffled = list(new)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert compare_samples(old, shuffled, session_spread_ratio=0.02) == there
    same = compare_samples(old, old, session_spread_ratio=0.0)
    assert same.estimate_ratio == pytest.approx(1.0)
    assert same.lower_ratio <= 1.0 + 1e-12
    assert same.upper_ratio >= 1.0 - 1e-12


@pytest.mark.parametrize(("n_old", "n_new"), [(1, 1), (2, 3), (4, 4), (3, 5)])
def test_the_rank_distribution_is_that_of_all_orders(n_old: int, n_new: int) -> None:
    counted: dict[int, int] = {}
    for places in itertools.combinations(range(n_old + n_new), n_old):
        others = [place for place in range(n_old + n_new) if place not in places]
        u = sum(place > other for place in places for other in others)
        counted[u] = counted.get(u, 0) + 1
    assert counted == {u: _arrangements(n_old, n_new, u) for u in range(n_old * n_new + 1)}


def enumerated_error(n_old: int, n_new: int, confidence: float) -> float:
    """The share of all orders of two groups from one distribution in which the lower bound excludes that they are."""
    places = range(n_old + n_new)
    n_wrong = 0
    for chosen in itertools.combinations(places, n_old):
        old = [1.0 + place for place in chosen]
        new = [1.0 + place for place in places if place not in chosen]
        n_wrong += compare_samples(old, new, session_spread_ratio=0.0, confidence=confidence).lower_ratio > 1.0
    return n_wrong / math.comb(n_old + n_new, n_old)


@pytest.mark.parametrize("alpha", [0.01, 0.05])
@pytest.mark.parametrize(("n_old", "n_new"), [(4, 5), (5, 4), (5, 5), (3, 12), (6, 6), (10, 3)])
def test_false_alarms_are_no_more_than_allowed(n_old: int, n_new: int, alpha: float) -> None:
    """Of all orders of equal groups, the bound calls no more than alpha a slowdown."""
    assert 0.0 < enumerated_error(n_old, n_new, 1.0 - alpha) <= alpha


def test_few_nights_after_many_keep_the_small_error_of_steps() -> None:
    """At 0.0005, four against thirteen are reported in the clearest order alone, which is 1 of 2380."""
    assert enumerated_error(13, 4, 1.0 - 0.0005) == pytest.approx(1 / 2380)


@pytest.mark.parametrize("alpha", [0.0005, 0.01])
@pytest.mark.parametrize(("n_old", "n_new"), [(5, 5), (6, 6), (13, 4), (14, 30), (20, 20), (21, 21), (30, 30)])
def test_no_bound_is_wider_than_the_error_allows(n_old: int, n_new: int, alpha: float) -> None:
    """The bound's place errs by no more than alpha; the next one would err by more, or nearly so where it is normal."""
    place, n_orders = _bound_place(n_old, n_new, alpha), math.comb(n_old + n_new, n_old)
    error = sum(_arrangements(n_old, n_new, u) for u in range(place + 1)) / n_orders
    if n_orders * alpha >= 1.0:
        assert error <= alpha
    else:
        assert place == 0
    reach = 1 if n_old * n_new <= 400 else n_old * n_new // 40
    assert sum(_arrangements(n_old, n_new, u) for u in range(place + reach + 1)) / n_orders > alpha


def test_too_few_samples_have_their_extremes_as_bounds() -> None:
    change = compare_samples([1, 2, 3], [10, 20, 30], session_spread_ratio=0.0)
    assert (change.lower_ratio, change.upper_ratio) == (pytest.approx(10 / 3), pytest.approx(30.0))
    assert enumerated_error(3, 3, 0.99) == pytest.approx(1 / 20)


def test_the_spread_between_sessions_widens_both_bounds() -> None:
    change = compare_samples([100] * 5, [110] * 5, session_spread_ratio=0.02)
    assert (change.estimate_ratio, change.lower_ratio) == (pytest.approx(1.1), pytest.approx(1.1 / 1.02))
    assert change.upper_ratio == pytest.approx(1.1 * 1.02)
