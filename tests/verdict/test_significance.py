"""The two-sample comparison."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.verdict.significance import _arrangements, _bound_place, compare_samples

_SAMPLES = st.lists(st.integers(1, 10**9), min_size=1, max_size=8)


@given(_SAMPLES)
def test_a_set_of_samples_equals_itself(samples: list[int]) -> None:
    """Compared with itself, a set of samples gives the ratio 1 within its bounds."""
    change = compare_samples(samples, samples, session_spread_ratio=0.0)
    assert change.estimate_ratio == pytest.approx(1.0)
    assert change.lower_ratio <= 1.0 + 1e-12
    assert change.upper_ratio >= 1.0 - 1e-12


@given(_SAMPLES, _SAMPLES)
def test_exchanging_the_sides_inverts_the_ratio(old: list[int], new: list[int]) -> None:
    """New over old is the inverse of old over new, bounds included."""
    there = compare_samples(old, new, session_spread_ratio=0.02)
    back = compare_samples(new, old, session_spread_ratio=0.02)
    assert there.estimate_ratio == pytest.approx(1.0 / back.estimate_ratio)
    assert there.lower_ratio == pytest.approx(1.0 / back.upper_ratio)


@given(_SAMPLES, _SAMPLES, st.randoms())
def test_the_order_of_samples_does_not_matter(old: list[int], new: list[int], random: object) -> None:
    """Shuffled samples give the same change."""
    shuffled = list(new)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    spread = {"session_spread_ratio": 0.0}
    assert compare_samples(old, new, **spread) == compare_samples(old, shuffled, **spread)


@pytest.mark.parametrize(("n_old", "n_new"), [(1, 1), (2, 3), (4, 4), (3, 5)])
def test_the_rank_distribution_is_that_of_all_orders(n_old: int, n_new: int) -> None:
    """The recurrence counts the same as an enumeration of every order of two small groups."""
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
    """At 0.0005, four against thirteen are told in the clearest order alone, which is 1 of 2380."""
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
    """Three and three err once in twenty, whatever confidence is asked for."""
    change = compare_samples([1, 2, 3], [10, 20, 30], session_spread_ratio=0.0)
    assert (change.lower_ratio, change.upper_ratio) == (pytest.approx(10 / 3), pytest.approx(30.0))
    assert enumerated_error(3, 3, 0.99) == pytest.approx(1 / 20)


def test_the_spread_between_sessions_widens_both_bounds() -> None:
    """Constant samples have an interval of exactly the stated spread."""
    change = compare_samples([100] * 5, [110] * 5, session_spread_ratio=0.02)
    assert change.estimate_ratio == pytest.approx(1.1)
    assert change.lower_ratio == pytest.approx(1.1 / 1.02)
    assert change.upper_ratio == pytest.approx(1.1 * 1.02)


@pytest.mark.parametrize(("old", "new"), [([], [1]), ([1], []), ([0], [1]), ([1], [-5])])
def test_nothing_and_times_that_are_not_positive_are_refused(old: list[int], new: list[int]) -> None:
    """An empty side, zero and negative times raise."""
    with pytest.raises(ValueError, match=r"nothing to compare|not positive"):
        compare_samples(old, new, session_spread_ratio=0.0)
