"""The exact signed-rank comparison of pairs."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from perfsuite.verdict.signed_rank import PairedChange, compare_pairs, least_p

_PAIRS = st.lists(st.tuples(st.integers(1, 10**7), st.integers(1, 10**7)), min_size=1, max_size=20)
_CLOSE_PAIRS = st.lists(st.tuples(st.integers(98, 102), st.integers(98, 102)), min_size=1, max_size=20)
_ALPHA = st.sampled_from((0.4, 0.1, 0.05, 0.01, 0.004, 0.0001))


def compared(pairs: list[tuple[int, int]], alpha: float = 0.05) -> PairedChange:
    """Compare pairs of the old and the new side."""
    return compare_pairs([old for old, _ in pairs], [new for _, new in pairs], alpha=alpha)


def noisy(n_pairs: int, *, seed: int, effect: float = 0.0, deviation: float = 0.02) -> tuple[list[int], list[int]]:
    """Pairs without ties: the new side differs by an effect and noise, in logarithms."""
    generator = random.Random(seed)
    old = [generator.randrange(10**8, 2 * 10**8) for _ in range(n_pairs)]
    return old, [round(each * math.exp(effect + generator.gauss(0, deviation))) for each in old]


@pytest.mark.parametrize("n_pairs", [1, 2, 3, 7, 8, 12, 20, 50])
@pytest.mark.parametrize("effect", [-0.01, 0.0, 0.01])
def test_p_values_are_those_of_scipy(n_pairs: int, effect: float) -> None:
    """Without ties both one-sided p-values are those of the exact Wilcoxon test."""
    old, new = noisy(n_pairs, seed=n_pairs, effect=effect)
    change = compare_pairs(old, new, alpha=0.05)
    differences = np.log(new) - np.log(old)
    assert change.p_slower == pytest.approx(wilcoxon(differences, method="exact", alternative="greater").pvalue)
    assert change.p_faster == pytest.approx(wilcoxon(differences, method="exact", alternative="less").pvalue)


def _p_over_all_signs(differences: list[float]) -> float:
    """Enumerate the test: how often random signs lead to as many positive Walsh averages."""

    def n_positive(values: tuple[float, ...]) -> int:
        return sum(a + b > 0 for a, b in itertools.combinations_with_replacement(values, 2))

    signed = itertools.product(*((each, -each) for each in differences))
    reached = [n_positive(values) >= n_positive(tuple(differences)) for values in signed]
    return sum(reached) / len(reached)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=7))
def test_ties_and_zeros_never_make_a_claim_stronger(steps: list[int]) -> None:
    """Where differences tie or are 0 the p-value is at least that of the test over all signs."""
    old = [2**20] * len(steps)
    new = [2 ** (20 + step) for step in steps]
    change = compare_pairs(old, new, alpha=0.05)
    assert change.p_slower >= _p_over_all_signs([float(step) for step in steps]) - 1e-12
    assert change.p_faster >= _p_over_all_signs([float(-step) for step in steps]) - 1e-12


@given(_PAIRS | _CLOSE_PAIRS, _ALPHA)
def test_bounds_and_p_values_say_the_same(pairs: list[tuple[int, int]], alpha: float) -> None:
    """A bound excludes 1 if and only if its p-value is at most alpha."""
    change = compared(pairs, alpha)
    assert (change.lower_ratio > 1.0, change.upper_ratio < 1.0) == (change.p_slower <= alpha, change.p_faster <= alpha)


@given(_PAIRS | _CLOSE_PAIRS, _ALPHA)
def test_the_estimate_lies_within_the_bounds(pairs: list[tuple[int, int]], alpha: float) -> None:
    """Lower bound, estimate and upper bound are in order, and p-values are chances."""
    change = compared(pairs, alpha)
    assert change.lower_ratio <= change.estimate_ratio <= change.upper_ratio
    assert 0.0 < change.p_slower <= 1.0
    assert 0.0 < change.p_faster <= 1.0
    assert change.n_pairs == len(pairs)


@given(_PAIRS | _CLOSE_PAIRS, _ALPHA)
def test_exchanging_the_sides_inverts_the_change(pairs: list[tuple[int, int]], alpha: float) -> None:
    """New over old is the inverse of old over new: estimate, bounds and p-values."""
    there, back = compared(pairs, alpha), compared([(new, old) for old, new in pairs], alpha)
    assert there.estimate_ratio == pytest.approx(1.0 / back.estimate_ratio)
    assert there.lower_ratio == pytest.approx(1.0 / back.upper_ratio)
    assert math.isinf(there.upper_ratio) == (back.lower_ratio == 0.0)
    assert (there.p_slower, there.p_faster) == (back.p_faster, back.p_slower)


@given(_PAIRS, st.randoms())
def test_the_order_of_the_pairs_does_not_matter(pairs: list[tuple[int, int]], random: random.Random) -> None:
    """Any order of the pairs gives the same change."""
    shuffled = random.sample(pairs, len(pairs))
    assert compared(shuffled) == compared(pairs)


def test_the_estimate_is_the_median_of_the_walsh_averages() -> None:
    """For log ratios 0, 1 and 4 (base 2) the averages are 0, 0.5, 1, 2, 2.5 and 4, and their median 1.5."""
    change = compare_pairs([1, 1, 1], [1, 2, 16], alpha=0.2)
    assert math.log2(change.estimate_ratio) == pytest.approx(1.5)


def test_the_bound_is_the_walsh_average_of_the_critical_count() -> None:
    """Of 3 pairs P(W >= 6) is 1/8 and P(W >= 5) is 1/4: at 0.2 the bounds are the extremes, at 0.25 the next ones."""
    extremes, next_ones = (compare_pairs([1, 1, 1], [1, 2, 16], alpha=alpha) for alpha in (0.2, 0.25))
    assert (extremes.lower_ratio, extremes.upper_ratio) == (1.0, 16.0)
    assert math.log2(next_ones.lower_ratio) == pytest.approx(0.5)
    assert math.log2(next_ones.upper_ratio) == pytest.approx(2.5)


@pytest.mark.parametrize("value", [1, 7, 10**6, 10**15])
def test_equal_pairs_are_no_change(value: int) -> None:
    """Constant pairs give exactly 1 with bounds of 1, and no evidence for either side."""
    change = compare_pairs([value] * 8, [value] * 8, alpha=0.004)
    assert change == PairedChange(
        estimate_ratio=1.0, lower_ratio=1.0, upper_ratio=1.0, p_slower=1.0, p_faster=1.0, n_pairs=8
    )


def test_mirrored_pairs_tie_exactly() -> None:
    """Pairs that undo one another leave an average of exactly 0, which counts for neither side."""
    change = compare_pairs([97_003, 100_019] * 3, [100_019, 97_003] * 3, alpha=0.1)
    assert change.estimate_ratio == 1.0
    assert change.p_slower == change.p_faster > 0.5


@pytest.mark.parametrize(("n_pairs", "alpha"), [(1, 0.05), (4, 0.05), (7, 0.004), (6, 0.01)])
def test_too_few_pairs_have_no_bounds(n_pairs: int, alpha: float) -> None:
    """Where 2^-n is above alpha there is an estimate, and no bound."""
    change = compare_pairs([100] * n_pairs, [120] * n_pairs, alpha=alpha)
    assert (change.estimate_ratio, change.lower_ratio, change.upper_ratio) == (pytest.approx(1.2), 0.0, math.inf)
    assert change.p_slower == least_p(n_pairs) > alpha


@pytest.mark.parametrize(("n_pairs", "alpha"), [(5, 0.05), (7, 0.01), (8, 0.004)])
def test_as_many_pairs_as_alpha_needs_have_bounds(n_pairs: int, alpha: float) -> None:
    """From 2^-n at most alpha on, pairs that are all slower show it."""
    change = compare_pairs([100] * n_pairs, [120] * n_pairs, alpha=alpha)
    assert change.lower_ratio == pytest.approx(1.2)
    assert change.p_slower == least_p(n_pairs) <= alpha


def test_many_pairs_are_exact_too() -> None:
    """Hundreds of pairs have p-values of scipy's exact test, and bounds close to the truth."""
    old, new = noisy(300, seed=4, effect=0.003)
    change = compare_pairs(old, new, alpha=0.01)
    exact = wilcoxon(np.log(new) - np.log(old), method="exact", alternative="greater").pvalue
    assert change.p_slower == pytest.approx(exact, rel=1e-9)
    assert 0.0 < math.log(change.estimate_ratio) < 0.006
    assert change.upper_ratio / change.lower_ratio < 1.01


@pytest.mark.parametrize("alpha", [0.004, 0.05])
def test_the_bounds_hold_as_often_as_they_say(alpha: float) -> None:
    """Over 4000 sets of 8 pairs with heavy tails, each bound misses the truth in about alpha of them."""
    generator = np.random.default_rng(11)
    noise = 0.02 * generator.standard_t(3, size=(4000, 8))
    new = np.rint(1e8 * np.exp(noise)).astype(np.int64)
    changes = [compare_pairs([10**8] * 8, row.tolist(), alpha=alpha) for row in new]
    for misses in (sum(each.lower_ratio > 1 for each in changes), sum(each.upper_ratio < 1 for each in changes)):
        assert misses <= 4000 * alpha + 3 * math.sqrt(4000 * alpha)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ([1, 2], [1], "2 old and 1 new latencies are no pairs"),
        ([], [], "no pairs"),
        ([1, 0], [1, 1], "a latency is 0 ns"),
        ([1], [-5], "a latency is -5 ns"),
        ([1], [math.nan], "a latency is nan ns"),
        ([math.inf], [1], "a latency is inf ns"),
    ],
)
def test_what_makes_no_pairs_is_refused(old: list[int], new: list[int], message: str) -> None:
    """Sides of different length or without pairs, and what is no time, are reported with what was seen."""
    with pytest.raises(ValueError, match=message):
        compare_pairs(old, new, alpha=0.05)


@pytest.mark.parametrize("alpha", [0.0, -0.1, 0.5, 1.0, math.nan])
def test_an_error_that_is_none_is_refused(alpha: float) -> None:
    """Alpha is more than 0 and less than 0.5."""
    with pytest.raises(ValueError, match=f"alpha is {alpha}"):
        compare_pairs([1], [1], alpha=alpha)
