"""Ranges with one choice each, from times by process, choice and size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfsuite.experiments.shapes.policy_choice import Span, acceptable, choose_ranges


def grid(
    times_ns: list[list[float]], *, sigma: float = 0.01, n_processes: int = 4, seed: int = 1
) -> NDArray[np.float64]:
    """Logarithms of times by choice and size, with noise by process."""
    generator = np.random.default_rng(seed)
    logs = np.log(np.array(times_ns))
    return logs + generator.normal(0.0, sigma, (n_processes, *logs.shape))


def spans(times_ns: list[list[float]], **noise: Any) -> list[tuple[int, int, int]]:
    """First place, last place and choice of each range."""
    return [(each.first, each.last, each.choice) for each in choose_ranges(grid(times_ns, **noise)).spans]


def test_a_crossover_parts_two_ranges() -> None:
    """Each side has the sizes at which it wins."""
    assert spans([[10, 20, 40, 80], [20, 30, 35, 40]]) == [(0, 1, 0), (2, 3, 1)]


def test_what_is_no_faster_than_noise_is_not_chosen() -> None:
    """Of equal choices the default, the best over all sizes, is taken throughout."""
    assert len(spans([[10, 20, 40], [10, 20, 40], [10, 20, 40]], sigma=0.05)) == 1


def test_a_saving_below_two_percent_makes_no_row() -> None:
    """However little noise there is, a row must be worth it."""
    assert spans([[100, 101, 100], [101, 100, 101]], sigma=1e-5) == [(0, 2, 0)]
    assert spans([[100, 104, 104], [104, 100, 100]], sigma=1e-5) == [(0, 0, 0), (1, 2, 1)]


def test_the_default_is_taken_where_another_is_only_as_good() -> None:
    """A choice that does not beat the default by more than noise is not taken, though it looks faster."""
    found = choose_ranges(grid([[100, 100, 50], [99, 99, 90]], sigma=1e-4))
    assert (found.default, found.worst, found.spans) == (0, 1, (Span(first=0, last=2, choice=0),))


def test_one_odd_size_between_its_neighbours_ends_no_range() -> None:
    """A size that disagrees with both of its neighbours is an exception and no change."""
    assert spans([[10, 10, 20, 10, 10], [20, 20, 10, 20, 20]]) == [(0, 4, 0)]


def test_two_odd_sizes_are_a_change() -> None:
    """What two neighbours agree on is a range of its own."""
    assert spans([[10, 10, 20, 20, 10], [20, 20, 10, 10, 20]]) == [(0, 1, 0), (2, 3, 1), (4, 4, 0)]


def test_a_change_at_the_last_size_is_seen() -> None:
    """There is no neighbour behind it that could disagree."""
    assert spans([[10, 10, 30], [12, 12, 10]]) == [(0, 1, 0), (2, 2, 1)]


def test_the_end_lies_where_both_together_take_least() -> None:
    """Sizes at which both are acceptable go to the faster one."""
    times = [[100.0, 100.0, 101.9, 101.9, 150.0], [150.0, 140.0, 100.0, 100.0, 100.0]]
    assert spans(times, sigma=1e-4) == [(0, 1, 0), (2, 4, 1)]


def test_a_single_choice_is_taken() -> None:
    """There is nothing to be told apart."""
    assert spans([[10, 20]]) == [(0, 1, 0)]


def test_the_worst_single_choice_is_the_slowest_over_all_sizes() -> None:
    """By the geometric mean, in which each size counts the same."""
    assert choose_ranges(grid([[10, 1000], [20, 1200], [90, 900]], sigma=1e-4)).worst == 2


def test_noise_widens_what_is_acceptable() -> None:
    """What is told apart with little noise is not with much."""
    times: list[list[float]] = [[100, 100], [110, 110], [112, 112]]
    assert acceptable(grid(times, sigma=0.001))[:, 0].tolist() == [True, False, False]
    assert acceptable(grid(times, sigma=0.4, n_processes=16))[:, 0].tolist() == [True, True, True]


def test_noise_makes_rows_in_no_more_than_one_of_twenty_grids() -> None:
    """The quantile counts all comparisons: of 400 grids of equal choices at most 5 % (and their own chance) part."""
    alike = [[100.0] * 8] * 6
    n_parted = sum(len(spans(alike, sigma=0.05, seed=seed)) > 1 for seed in range(400))
    assert n_parted <= 30
