"""How many launches a sample has, and what becomes of them."""

from __future__ import annotations

import pytest

from perfsuite.measure.shapes.sampling import FEWEST_LAUNCHES, MOST_LAUNCHES, launches_of_a_sample, sample_ns

from .fake_bench import FakeOperation, gemv


class Listed(FakeOperation):
    """An operation whose launches are given."""

    def __init__(self, times_ns: list[int]) -> None:
        """Take the times."""
        super().__init__(gemv(1), [])
        self._times_ns = iter(times_ns)

    def run_ns(self) -> int:
        """Return the next time."""
        return next(self._times_ns)


@pytest.mark.parametrize(
    ("launch_ns", "n_launches"),
    [
        ([1_000], MOST_LAUNCHES),
        ([100_001], 5),
        ([100_001, 900_000], 5),
        ([250_000], FEWEST_LAUNCHES),
        ([1_900_000], FEWEST_LAUNCHES),
        ([2_100_000], 2),
        ([50_000_000], 1),
        ([1_000, 20_000_000], 1),
        ([1_000, 3_000_000], 3),
        ([1_000, 1_000, 1_000, 3_000_000], 7),
    ],
)
def test_the_fastest_says_how_many_launches_and_all_how_many_at_most(launch_ns: list[int], n_launches: int) -> None:
    """Small operations are launched for some 100 microseconds, and large ones beside them not too often."""
    assert launches_of_a_sample(launch_ns) == n_launches


@pytest.mark.parametrize(("times_ns", "expected_ns"), [([7], 7), ([9, 5], 5), ([400, 12, 10, 900], 10)])
def test_a_sample_is_the_fastest_launch(times_ns: list[int], expected_ns: int) -> None:
    """What disturbs all launches but one does not show."""
    assert sample_ns(Listed(times_ns), len(times_ns)) == expected_ns
