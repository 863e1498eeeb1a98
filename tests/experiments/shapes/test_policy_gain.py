"""Gains with their intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t

from perfsuite.experiments.shapes.policy_gain import gain_of_range, is_surely_below
from tests.synthetic_shape_policy import gain


def test_a_gain_is_the_geometric_mean() -> None:
    """Twice as fast at one shape and half as fast at another is no gain."""
    logs = np.log([[2.0, 0.5], [2.0, 0.5]])
    assert gain_of_range(logs, n_drawn=0).ratio == pytest.approx(1.0)


def test_the_interval_is_students_over_processes() -> None:
    """Means of 0.1 and 0.3 have a standard error of 0.1, and of two processes 12.7 of it count."""
    found = gain_of_range(np.array([[0.0, 0.2], [0.2, 0.4]]), n_drawn=0)
    assert math.log(found.ratio) == pytest.approx(0.2)
    assert math.log(found.upper_ratio) == pytest.approx(0.2 + 12.7062 * 0.1, rel=1e-4)
    assert math.log(found.lower_ratio) == pytest.approx(0.2 - 12.7062 * 0.1, rel=1e-4)


def test_sizes_vary_where_they_stand_for_a_range() -> None:
    """Gains that are the same in all processes and differ by size are certain of the grid, not of the range."""
    logs = np.tile([0.0, 0.4, 0.2], (4, 1))
    assert gain_of_range(logs, n_drawn=0).upper_ratio == pytest.approx(math.exp(0.2))
    spread = t.ppf(0.975, 8 / 5) * math.sqrt((0.16 + 0.04) / 2 / 2 / 3)
    assert math.log(gain_of_range(logs, n_drawn=3).upper_ratio) == pytest.approx(0.2 + spread)


def test_a_trend_over_the_range_is_no_spread_within_strata() -> None:
    """Ten gains that rise steadily from 1 to 2.5 have a narrower interval than the same ones in disorder."""
    rising = np.tile(np.linspace(0.0, 0.9, 10), (4, 1))
    mixed = rising[:, [0, 9, 1, 8, 2, 7, 3, 6, 4, 5]]
    assert gain_of_range(rising, n_drawn=10).upper_ratio < math.exp(0.45 + 0.06)
    assert gain_of_range(mixed, n_drawn=10).upper_ratio > math.exp(0.45 + 0.3)


def test_a_range_that_was_measured_whole_has_no_spread_of_sizes() -> None:
    """Where no size was drawn from others, processes alone vary."""
    logs = np.array([[0.1, 0.5], [0.2, 0.7], [0.3, 0.6]])
    assert gain_of_range(logs, n_drawn=0) == gain_of_range(logs, n_drawn=0)
    assert gain_of_range(logs, n_drawn=1).upper_ratio > gain_of_range(logs, n_drawn=0).upper_ratio


def test_without_any_spread_the_interval_is_a_point() -> None:
    """Equal numbers have a mean and no error."""
    found = gain_of_range(np.full((4, 3), math.log(2.0)), n_drawn=3)
    assert found.lower_ratio == pytest.approx(2.0)
    assert found.upper_ratio == pytest.approx(2.0)


def test_a_hopeless_interval_is_finite() -> None:
    """An interval beyond what a float holds is cut, for a file tells no infinity."""
    found = gain_of_range(np.array([[-200.0], [200.0]]), n_drawn=0)
    assert 0.0 < found.lower_ratio < 1e-100
    assert 1e100 < found.upper_ratio < math.inf


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Of 1000 grids 95 % have the true gain in their interval, within what chance allows."""
    generator = np.random.default_rng(7)
    n_held = 0
    for _ in range(1000):
        found = gain_of_range(generator.normal(0.1, 0.05, (4, 6)), n_drawn=0)
        n_held += found.lower_ratio <= math.exp(0.1) <= found.upper_ratio
    assert 925 <= n_held <= 975


def test_intervals_of_a_sawtooth_hold_its_mean_as_often_as_they_say() -> None:
    """Of 1000 draws of ten sizes from a sawtooth 95 % or more have its mean in their interval, without any noise."""
    generator, n_held = np.random.default_rng(3), 0
    for _ in range(1000):
        sizes = 100 * np.arange(10) + generator.integers(0, 100, 10)
        found = gain_of_range(np.tile(sizes % 33 / 33.0, (4, 1)), n_drawn=10)
        n_held += (
            math.log(found.lower_ratio) <= float(np.mean(np.arange(1000) % 33 / 33.0)) <= math.log(found.upper_ratio)
        )
    assert n_held >= 935


@pytest.mark.parametrize(
    ("measured", "promised", "expected"), [(1.32, 1.5, False), (1.30, 1.5, True), (1.5, 1.5, False), (2.0, 1.5, False)]
)
def test_a_gain_is_surely_below_another_by_the_interval_of_their_difference(
    measured: float, promised: float, expected: bool
) -> None:
    """Of two intervals of a factor of 1.1 the difference reaches over 1.1 to the power of the root of 2, 1.144."""
    assert is_surely_below(gain(measured), gain(promised)) is expected
