"""The tick of a device's clock, measured by the times that it gave."""

from __future__ import annotations

import numpy as np
import pytest

from perfsuite.trace.opencl.stamps import measured_tick_ns, resolved_center, tick_error_ns


def stamped(tick_ns: float, n: int, longest_ns: int, seed: int = 3) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return times, between two of which up to the longest passes, cut to the tick and then to a ns."""
    passed_ns = np.cumsum(np.random.default_rng(seed).integers(40, longest_ns, n)) + 10**15
    return np.floor(np.floor(passed_ns / tick_ns) * tick_ns).astype(np.int64)


@pytest.mark.parametrize("reported_ns", [None, 1, 1000])
@pytest.mark.parametrize("tick_ns", [10, 38.4615385, 52.0833333, 80, 83.3333333, 100, 1000, 1041.6666667])
@pytest.mark.parametrize(("n", "longest_ns"), [(400, 600), (400, 9_000), (60, 9_000), (400, 90_000)])
def test_the_tick_is_what_is_measured_whatever_the_driver_says(
    tick_ns: float, n: int, longest_ns: int, reported_ns: int | None
) -> None:
    """Whole ticks are found exactly, others to a ns; kernels may be few, short or far apart, but not all of it."""
    found = measured_tick_ns(stamped(tick_ns, n, longest_ns), reported_ns)
    assert found == pytest.approx(tick_ns, abs=0 if tick_ns == int(tick_ns) else 1)


@pytest.mark.parametrize("longest_ns", [600, 9_000, 90_000])
def test_a_fine_clock_is_no_coarse_one(longest_ns: int) -> None:
    assert measured_tick_ns(stamped(1, 400, longest_ns)) == 1


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n", [2, 6, 12, 20])
@pytest.mark.parametrize("longest_ns", [500, 9_000, 3_000_000])
def test_few_times_never_make_a_coarse_clock_a_fine_one(n: int, longest_ns: int, seed: int) -> None:
    assert measured_tick_ns(stamped(52.0833333, n, longest_ns, seed), 1) in {None, 52}


@pytest.mark.parametrize(
    ("times_ns", "reported_ns", "expected"),
    [
        ((), None, None),
        ((), 52, 52),
        ((0, 0), 1, None),
        ((7, 1007), None, None),
        ((7, 1007), 1, None),
        ((7, 1007), 80, 80),
        ((9000001302, 9000001354), 1000, 52),
    ],
)
def test_two_times_leave_it_to_a_driver_that_knows(
    times_ns: tuple[int, ...], reported_ns: int | None, expected: int | None
) -> None:
    """What the driver says stands where it is more than 1 ns, unless two times lie closer; 0 is no time."""
    assert measured_tick_ns(np.array(times_ns, np.int64), reported_ns) == expected


def test_the_error_of_a_mean_falls_with_the_durations() -> None:
    """95 % of means of 30 durations cut to the tick are within the error, also where they last half a tick more."""
    chance = np.random.default_rng(5)
    begin_ns, length_ns = chance.uniform(0, 10**6, (2000, 30)), 4500.0
    cut_ns = np.floor((begin_ns + length_ns) / 1000) * 1000 - np.floor(begin_ns / 1000) * 1000
    is_within = np.abs(cut_ns.mean(axis=1) - length_ns) <= tick_error_ns(1000, 30)
    assert is_within.mean() == pytest.approx(0.95, abs=0.03)
    assert (tick_error_ns(None, 30), tick_error_ns(1000, 0)) == (0.0, 0.0)


def test_the_middle_of_cut_durations_is_finer_than_the_tick() -> None:
    """The median of 4 and 5 ticks is one of them, their middle lies between; without a tick it is the median."""
    cut_ns = [4000] * 6 + [5000] * 4 + [90_000]
    assert resolved_center(cut_ns, 1000) == pytest.approx(4400)
    assert resolved_center(cut_ns, 1) == resolved_center(cut_ns, None) == 4000
    assert resolved_center([100, 200], 4) == 150
