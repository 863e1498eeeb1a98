"""What a router without preference does."""

from __future__ import annotations

import random
from statistics import fmean

import pytest

from perfsuite.expectation.expert_reuse import ReuseExpectation, reuse_expectation


def expectation(n_steps: int, n_layers: int = 4) -> ReuseExpectation:
    """Return what is expected of 4 of 60 experts."""
    return reuse_expectation(60, 4, n_layers, n_steps)


def test_a_long_run_sees_the_geometric_mean() -> None:
    """Far beyond E / u = 15 steps the mean distance is 15, and the density is u / E."""
    found = expectation(2_000, n_layers=1)
    assert found.mean_distance == pytest.approx(15.0, rel=0.01)
    assert found.density_ratio == pytest.approx(4 / 60)


def test_the_formula_and_the_bounds_agree_with_a_plain_simulation() -> None:
    """Another simulation's mean is the formula's, and its runs are within the bounds as often as they should."""
    found, chance, means, n_found = expectation(40), random.Random(7), [], []
    for _ in range(200):
        distances: list[int] = []
        for _layer in range(4):
            last: dict[int, int] = {}
            for step in range(40):
                for expert in chance.sample(range(60), 4):
                    if expert in last:
                        distances.append(step - last[expert])
                    last[expert] = step
        means.append(fmean(distances))
        n_found.append(len(distances))
    assert found.mean_distance == pytest.approx(fmean(means), rel=0.01)
    assert found.n_distances == pytest.approx(fmean(n_found), rel=0.02)
    assert found.lower_distance is not None
    assert found.upper_distance is not None
    inside = sum(found.lower_distance <= mean <= found.upper_distance for mean in means)
    assert inside >= 190
    assert found.upper_distance - found.lower_distance < 3.0
