"""Gains with their intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perfsuite.verdict.shapes.policy_gain import gain_of_grid, gain_of_range


def test_a_gain_is_the_geometric_mean() -> None:
    """Twice as fast at one shape and half as fast at another is no gain."""
    logs = np.log([[2.0, 0.5], [2.0, 0.5]])
    assert gain_of_grid(logs).ratio == pytest.approx(1.0)


def test_the_interval_is_students_over_processes() -> None:
    """Means of 0.1 and 0.3 have a standard error of 0.1, and of two processes 12.7 of it count."""
    found = gain_of_grid(np.array([[0.0, 0.2], [0.2, 0.4]]))
    assert math.log(found.ratio) == pytest.approx(0.2)
    assert math.log(found.upper_ratio) == pytest.approx(0.2 + 12.7062 * 0.1, rel=1e-4)
    assert math.log(found.lower_ratio) == pytest.approx(0.2 - 12.7062 * 0.1, rel=1e-4)


def test_sizes_vary_where_they_stand_for_a_range() -> None:
    """Gains that are the same in all processes and differ by size are certain of the grid, not of the range."""
    logs = np.tile([0.0, 0.2, 0.4], (4, 1))
    assert gain_of_grid(logs).upper_ratio == pytest.approx(math.exp(0.2))
    spread = 4.3027 * math.sqrt(0.04 / 3)
    assert math.log(gain_of_range(logs).upper_ratio) == pytest.approx(0.2 + spread, rel=1e-4)


def test_one_size_stands_for_itself() -> None:
    """Of one size there is no telling how sizes differ."""
    logs = np.array([[0.1], [0.2], [0.3]])
    assert gain_of_range(logs) == gain_of_grid(logs)


def test_without_any_spread_the_interval_is_a_point() -> None:
    """Equal numbers have a mean and no error."""
    found = gain_of_range(np.full((4, 3), math.log(2.0)))
    assert found.lower_ratio == pytest.approx(2.0)
    assert found.upper_ratio == pytest.approx(2.0)


def test_a_hopeless_interval_is_finite() -> None:
    """An interval beyond what a float holds is cut, for a file tells no infinity."""
    found = gain_of_grid(np.array([[-200.0], [200.0]]))
    assert 0.0 < found.lower_ratio < 1e-100
    assert 1e100 < found.upper_ratio < math.inf


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Of 1000 grids 95 % have the true gain in their interval, within what chance allows."""
    generator = np.random.default_rng(7)
    n_held = 0
    for _ in range(1000):
        found = gain_of_grid(generator.normal(0.1, 0.05, (4, 6)))
        n_held += found.lower_ratio <= math.exp(0.1) <= found.upper_ratio
    assert 925 <= n_held <= 975
