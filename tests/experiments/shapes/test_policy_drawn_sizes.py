"""Sizes that stand for a row."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from perfsuite.experiments.shapes.policy_drawn_sizes import MOST_SIZES, DrawnSizes, drawn_sizes
from perfsuite.experiments.shapes.policy_record import PolicyRow
from tests.synthetic_shape_policy import CPU, FIBONACCI, policy_row


def drawn(row: PolicyRow, seed: int = 0, **changes: object) -> DrawnSizes:
    """Draw with a seed."""
    return drawn_sizes(row, FIBONACCI, draw=random.Random(seed), **changes)  # type: ignore[arg-type]


def test_sizes_are_spread_over_the_range_evenly_on_its_logarithm() -> None:
    """Ten strata of equal factors have one size each, from the first to the last."""
    bounds = [10 * 12.8 ** (part / 10) for part in range(11)]
    for seed in range(20):
        found = drawn(policy_row(10, 127, CPU), seed)
        assert len(found.sizes) == found.n_drawn == MOST_SIZES
        for size, low, high in zip(found.sizes, bounds, bounds[1:], strict=False):
            assert low - 1.0 <= size <= high + 1.0


def test_another_draw_has_other_sizes_of_the_same_strata() -> None:
    """A promise and a check are of one quantity, and do not look at the same sizes."""
    found = [drawn(policy_row(100, 400, CPU), seed) for seed in range(30)]
    assert len({each.sizes for each in found}) == 30
    places = list(zip(*(each.sizes for each in found), strict=True))
    assert all(max(left) < min(right) for left, right in pairwise(places))


def test_all_sizes_of_a_range_are_drawn_at_times() -> None:
    """But for those that the choice was fitted to, for each stratum here has others."""
    found = {size for seed in range(400) for size in drawn(policy_row(40, 80, CPU), seed).sizes}
    assert found == set(range(40, 81)) - {55}


def test_fitted_sizes_are_drawn_only_where_there_are_no_others() -> None:
    """Of 1 to 377 the strata of 1, and of 2 and 3, hold nothing else; it is told which they were."""
    found = drawn(policy_row(1, 377, CPU))
    assert found.sizes[0] == 1
    assert found.fitted_sizes == found.sizes[:2]
    assert not set(found.sizes[2:]) & set(FIBONACCI)


@pytest.mark.parametrize("most", [1, 3, 9, 10])
def test_a_short_range_is_measured_whole(most: int) -> None:
    """Nothing is left to chance where there are no more sizes than strata."""
    found = drawn(policy_row(1, most, CPU))
    assert (found.sizes, found.n_drawn) == (tuple(range(1, most + 1)), 0)


def test_sizes_are_whole_steps() -> None:
    """Where rows are of blocks of 32, so are the sizes, whatever the ends of the range."""
    found = drawn(policy_row(33, 1000, CPU), step=32)
    assert len(found.sizes) == MOST_SIZES
    assert all(size % 32 == 0 and 33 <= size <= 1000 for size in found.sizes)
