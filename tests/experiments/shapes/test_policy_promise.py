"""Policies by shape: what a table may be, what it answers, and what it promises from given times."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import t

from perfsuite.errors import PolicyError
from perfsuite.experiments.shapes.policy_promise import (
    MOST_SIZES,
    DrawnSizes,
    cases_of,
    drawn_sizes,
    gain_of_range,
    is_surely_below,
    promising,
    row_claims,
    table_claims,
)
from perfsuite.experiments.shapes.policy_record import (
    NO_GAIN,
    PolicyRow,
)
from tests.synthetic_shape_policy import (
    CPU,
    FIBONACCI,
    OPENCL,
    SIZES,
    backend_question,
    gain,
    policy_row,
    policy_table,
)


def test_a_gain_is_the_geometric_mean_with_students_interval_over_processes() -> None:
    """Means of 0.1 and 0.3 have a standard error of 0.1, and of two processes 12.7 of it count."""
    assert gain_of_range(np.log([[2.0, 0.5], [2.0, 0.5]]), n_drawn=0).ratio == pytest.approx(1.0)
    found = gain_of_range(np.array([[0.0, 0.2], [0.2, 0.4]]), n_drawn=0)
    logs = [math.log(each) for each in (found.lower_ratio, found.ratio, found.upper_ratio)]
    assert logs == pytest.approx([0.2 - 12.7062 * 0.1, 0.2, 0.2 + 12.7062 * 0.1], rel=1e-4)
    found = gain_of_range(np.full((4, 3), math.log(2.0)), n_drawn=3)
    assert (found.lower_ratio, found.upper_ratio) == pytest.approx((2.0, 2.0))
    found = gain_of_range(np.array([[-200.0], [200.0]]), n_drawn=0)
    assert 0.0 < found.lower_ratio < 1e-100
    assert 1e100 < found.upper_ratio < math.inf


def test_sizes_vary_where_they_stand_for_a_range() -> None:
    """Gains that are the same in all processes and differ by size are certain of the grid, not of the range."""
    logs = np.tile([0.0, 0.4, 0.2], (4, 1))
    assert gain_of_range(logs, n_drawn=0).upper_ratio == pytest.approx(math.exp(0.2))
    assert gain_of_range(logs, n_drawn=1).upper_ratio > math.exp(0.2)
    spread = t.ppf(0.975, 8 / 5) * math.sqrt((0.16 + 0.04) / 2 / 2 / 3)
    assert math.log(gain_of_range(logs, n_drawn=3).upper_ratio) == pytest.approx(0.2 + spread)


def test_a_trend_over_the_range_is_no_spread_within_strata() -> None:
    """Ten gains that rise steadily from 1 to 2.5 have a narrower interval than the same ones in disorder."""
    rising = np.tile(np.linspace(0.0, 0.9, 10), (4, 1))
    mixed = rising[:, [0, 9, 1, 8, 2, 7, 3, 6, 4, 5]]
    assert gain_of_range(rising, n_drawn=10).upper_ratio < math.exp(0.45 + 0.06)
    assert gain_of_range(mixed, n_drawn=10).upper_ratio > math.exp(0.45 + 0.3)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Of 1000 grids with noise about 95 % have the true gain in their interval, of a sawtooth without any as many."""
    generator, n_held, n_saws_held, mean = np.random.default_rng(7), 0, 0, float(np.mean(np.arange(1000) % 33 / 33.0))
    for _ in range(1000):
        found = gain_of_range(generator.normal(0.1, 0.05, (4, 6)), n_drawn=0)
        n_held += found.lower_ratio <= math.exp(0.1) <= found.upper_ratio
        sizes = 100 * np.arange(10) + generator.integers(0, 100, 10)
        found = gain_of_range(np.tile(sizes % 33 / 33.0, (4, 1)), n_drawn=10)
        n_saws_held += found.lower_ratio <= math.exp(mean) <= found.upper_ratio
    assert 925 <= n_held <= 975
    assert n_saws_held >= 935


@pytest.mark.parametrize(
    ("measured", "promised", "expected"), [(1.32, 1.5, False), (1.30, 1.5, True), (1.5, 1.5, False), (2.0, 1.5, False)]
)
def test_a_gain_is_surely_below_another_by_the_interval_of_their_difference(
    measured: float, promised: float, expected: bool
) -> None:
    """Of two intervals of a factor of 1.1 the difference reaches over 1.1 to the power of the root of 2, 1.144."""
    assert is_surely_below(gain(measured), gain(promised)) is expected


def drawn(row: PolicyRow, seed: int = 0, **changes: object) -> DrawnSizes:
    return drawn_sizes(row, FIBONACCI, draw=random.Random(seed), **changes)  # type: ignore[arg-type]


def test_sizes_are_spread_over_the_range_evenly_on_its_logarithm() -> None:
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


def test_fitted_sizes_are_drawn_only_where_there_are_no_others() -> None:
    """Of 1 to 377 the strata of 1, and of 2 and 3, hold nothing else; the report says which they were."""
    found = drawn(policy_row(1, 377, CPU))
    assert found.sizes[0] == 1
    assert found.fitted_sizes == found.sizes[:2]
    assert not set(found.sizes[2:]) & set(FIBONACCI)


def test_sizes_are_whole_steps() -> None:
    """Where rows are of blocks of 32, so are the sizes, whatever the ends of the range."""
    found = drawn(policy_row(33, 1000, CPU), step=32)
    assert len(found.sizes) == MOST_SIZES
    assert all(size % 32 == 0 and 33 <= size <= 1000 for size in found.sizes)


QUESTION = backend_question(sizes=SIZES)


def test_rows_promise_over_their_range_and_the_table_at_its_sizes() -> None:
    """A device that is twice as fast at the sizes of the grid, and half as fast between them, promises both."""
    asked = policy_table(rows=(policy_row(1, 512, OPENCL),))
    rows = row_claims(asked, QUESTION, random.Random(0))
    claims = (*table_claims(asked, QUESTION), *rows)
    times = {
        case: np.full(4, 0.0 if case.subject is CPU.subject else np.log(0.5 if case.shape.of("n") in SIZES else 2))
        for case in cases_of(claims)
    }
    table = promising(asked, claims, times)
    n_fitted = len(rows[0].drawn.fitted_sizes)
    assert table.gain_over_default.ratio == pytest.approx(2.0)
    assert table.rows[0].gain_over_default.ratio == pytest.approx(2.0 ** ((2 * n_fitted - 10) / 10))
    assert (table.rows[0].gain_over_worst, table.gain_over_worst) == (NO_GAIN, NO_GAIN)


def test_a_promise_and_a_check_draw_differently() -> None:
    first, again, other = (row_claims(policy_table(), QUESTION, random.Random(seed)) for seed in (1, 1, 2))
    assert first == again
    assert not {each.drawn for each in first} & {each.drawn for each in other}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((), "expected the first to begin at 1 and the last to end at 512"),
        ((policy_row(1, 64, CPU),), "the last to end at 512"),
        ((policy_row(1, 8, CPU), policy_row(64, 512, OPENCL)), r"rows\[1\].least: is 64, expected 9"),
        ((policy_row(1, 64, CPU), policy_row(64, 512, OPENCL)), r"rows\[1\].least: is 64, expected 65"),
        ((policy_row(1, 512, CPU, measured_most=500),), r"rows\[0\]: measured_least and measured_most are none"),
    ],
)
def test_rows_have_neither_gaps_nor_overlaps(rows: tuple[PolicyRow, ...], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        policy_table(rows=rows)
