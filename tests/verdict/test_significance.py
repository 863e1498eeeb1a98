"""The two-sample comparison."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.verdict.significance import _arrangements, _tail_count, compare_samples

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


@pytest.mark.parametrize("n", [3, 5, 8, 12])
def test_the_tail_is_as_large_as_the_error_allows(n: int) -> None:
    """No more orders are cut than one in a hundred, and one more would be too many."""
    tail, total = _tail_count(n, n, 0.01), math.comb(2 * n, n)
    cumulated = [sum(_arrangements(n, n, u) for u in range(count)) for count in range(tail + 2)]
    assert cumulated[tail] / total <= 0.01
    assert cumulated[tail + 1] / total > 0.01


def test_many_samples_use_the_normal_distribution() -> None:
    """Large samples give a tail close to the exact one of a size that both can do."""
    assert _tail_count(30, 30, 0.01) == pytest.approx(292, abs=3)


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
