"""The tick of a device's clock, measured by the times that it gave."""

from __future__ import annotations

import numpy as np
import pytest

from perfsuite.trace.opencl.clock_tick import measured_tick_ns, resolved_center, tick_error_ns


def stamped(tick_ns: float, n: int = 400) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return times between which some microseconds pass, cut to the tick and then to a ns."""
    passed_ns = np.cumsum(np.random.default_rng(3).integers(40, 9000, n)) + 10**15
    return np.floor(np.floor(passed_ns / tick_ns) * tick_ns).astype(np.int64)


@pytest.mark.parametrize(
    ("tick_ns", "expected"), [(1, 1), (52.0833333, 52), (80, 80), (83.3333333, 83), (100, 100), (1000, 1000)]
)
def test_the_tick_is_found(tick_ns: float, expected: int) -> None:
    """Whole ticks are found exactly, others to a ns, and a clock of 1 ns has one of 1 ns."""
    found = measured_tick_ns(stamped(tick_ns))
    assert found is not None
    assert abs(found - expected) <= (0 if tick_ns == int(tick_ns) else 1)


@pytest.mark.parametrize(
    ("times_ns", "reported_ns", "expected"),
    [
        ((), None, None),
        ((), 52, 52),
        ((0, 0), None, None),
        ((7, 1007), None, None),
        ((7, 1007), 80, 80),
        ((7, 47), 1000, 40),
    ],
)
def test_few_times_leave_it_to_the_driver(
    times_ns: tuple[int, ...], reported_ns: int | None, expected: int | None
) -> None:
    """What the driver says stands, unless two times lie closer; 0 is no time."""
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
