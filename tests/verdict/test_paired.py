"""Ratios of pairs."""

from __future__ import annotations

import random

import pytest

from perfsuite.verdict.paired import paired_ratio


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
