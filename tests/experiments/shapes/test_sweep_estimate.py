"""What a size takes, from its samples."""

from __future__ import annotations

import random

import pytest

from perfsuite.experiments.shapes.sweep_estimate import QUARTILE, choose_part, estimate


def test_the_estimate_is_the_lower_quartile() -> None:
    """Between samples where it falls between them."""
    assert estimate([50, 10, 30, 20, 40]).time_ns == 20.0
    assert estimate([40, 10, 20, 30]).time_ns == pytest.approx(17.5)
    assert estimate([7]) == (7.0, 7.0, 7.0)


def test_disturbed_rounds_do_not_move_it() -> None:
    """Of 15 rounds ten may be disturbed."""
    quiet = estimate([100, 101, 102, 103, 104] + [110] * 10)
    disturbed = estimate([100, 101, 102, 103, 104] + [9999] * 10)
    assert quiet.time_ns == disturbed.time_ns


def modes(slow_share: float, n_sizes: int = 200) -> list[list[int]]:
    """Fifteen samples a size, of which a share takes twice as long."""
    draws = random.Random(2)
    return [
        [
            round(1e6 * (2.0 if draws.random() < slow_share else 1.0) * draws.lognormvariate(0.0, 0.005))
            for _ in range(15)
        ]
        for _ in range(n_sizes)
    ]


@pytest.mark.parametrize(("slow_share", "part"), [(0.0, 0.25), (0.2, 0.25), (0.65, 0.125), (0.85, 0.5), (1.0, 0.25)])
def test_a_quantile_between_two_modes_is_not_taken(slow_share: float, part: float) -> None:
    """Where 65 of 100 samples are disturbed the eighth is not, and where 85 are the median always is."""
    assert choose_part(modes(slow_share)) == part


def test_few_sizes_have_the_quartile() -> None:
    """They have no neighbours to agree with."""
    assert choose_part([[1, 2, 3], [1, 2, 3]]) == QUARTILE


def test_other_quantiles_have_intervals_too() -> None:
    """The median of 15 lies between the fourth sample and the twelfth."""
    assert estimate(range(101, 116), 0.5) == (108.0, 104.0, 112.0)


def test_the_interval_of_fifteen_rounds_lies_between_its_first_and_eighth_sample() -> None:
    """Fewer than one, or more than seven, of 15 lie below the quartile with a chance of under 2.5 % each."""
    assert estimate(range(101, 116))[1:] == (101.0, 108.0)


@pytest.mark.parametrize("n_rounds", [13, 15, 40])
def test_the_interval_holds_the_quartile(n_rounds: int) -> None:
    """In at least 95 of 100 sweeps, whatever the distribution; here it has a long tail."""
    draws = random.Random(1)
    quartile_ns = 1000.0 * 4 / 3
    held = 0
    for _ in range(2000):
        found = estimate([round(1000.0 / (1.0 - draws.random())) for _ in range(n_rounds)])
        held += found.lower_ns <= quartile_ns <= found.upper_ns
    assert held >= 0.94 * 2000


def test_few_rounds_have_the_widest_interval() -> None:
    """From the least to a high one; two rounds say no more than their samples."""
    assert estimate([10, 20])[1:] == (10.0, 20.0)


def test_the_interval_of_many_rounds_is_narrow() -> None:
    """It is a normal distribution's then: 2500 and 1.96 times the root of 10000 / 4 * 3 / 4."""
    found = estimate(range(1, 10_001))
    assert found.lower_ns == pytest.approx(2500.5 - 84.9, abs=1.0)
    assert found.upper_ns == pytest.approx(2500.5 + 84.9, abs=1.0)
