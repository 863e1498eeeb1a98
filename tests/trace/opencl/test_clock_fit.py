"""Intervals of the offset between two clocks."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from perfsuite.trace.opencl.clock_fit import (
    LEAST_RATE_CHANGE,
    MOST_RATE,
    MOST_READINGS,
    ClockReadings,
    call_readings,
    fit_segments,
    joined,
    timer_readings,
)

from ...synthetic_opencl import EPOCH_NS, drifting, steady_commands, timer_point, trace


def test_the_timers_readings_are_those_of_the_device() -> None:
    points = [timer_point(EPOCH_NS + at, int, device=at % 2) for at in (4, 2, 1, 0)]
    found = timer_readings(trace([], clock_points=points), 0)
    assert ((found.device_ns - EPOCH_NS).tolist(), found.lower_ns.tolist()) == ([0, 2, 4], [-500] * 3)
    assert found.upper_ns.tolist() == [500] * 3
    halves = [timer_readings(trace([], clock_points=[timer_point(at, int) for at in ats]), 0) for ats in ((1, 5), (3,))]
    assert joined(*halves).device_ns.tolist() == [1, 3, 5]


def test_of_many_calls_the_shortest_are_taken() -> None:
    commands = np.concatenate(steady_commands(10 * MOST_READINGS + 3, drifting()))
    commands["host_end_ns"][5::11] -= 500
    found = call_readings(trace([commands]), 0, commands)
    assert MOST_READINGS // 2 < found.device_ns.size <= MOST_READINGS
    assert ((found.host_after_ns - found.host_before_ns) == 1500).mean() > 0.9
    commands = np.concatenate(steady_commands(5, drifting()))
    assert call_readings(trace([commands]), 0, commands).device_ns.tolist() == commands["queued_ns"].tolist()
    assert call_readings(trace([]), 0, commands[:0]).device_ns.size == 0


S = 1_000_000_000


def readings(*rows: tuple[int, int, int]) -> ClockReadings:
    """Return readings of device time, host time before and host time after."""
    device_ns, before_ns, after_ns = np.array(rows, dtype=np.int64).T
    return ClockReadings(device_ns=device_ns, host_before_ns=before_ns, host_after_ns=after_ns)


def test_one_reading_gives_the_middle_and_half_of_its_bracket() -> None:
    """At the reading the error is half of the bracket; away from it, it grows as fast as clocks may drift."""
    (segment,) = fit_segments(readings((1000, 5000, 5100)))
    host_ns, error_ns = segment.host_times(np.array([1000, 1000 + S]))
    assert host_ns.tolist() == [5050, 5050 + S]
    assert error_ns.tolist() == [50, pytest.approx(50 + (MOST_RATE + LEAST_RATE_CHANGE) * S, abs=1)]


def test_two_readings_give_a_rate_within_what_their_brackets_allow() -> None:
    """Ends of 100 ns a second apart leave 100 ns a second of doubt about the rate, and 50 ns at the ends themselves."""
    (segment,) = fit_segments(readings((0, 0, 100), (S, S + 20_000, S + 20_100)))
    assert (segment.rate, segment.rate_change) == (pytest.approx(20e-6), pytest.approx(100e-9 + LEAST_RATE_CHANGE))
    host_ns, error_ns = segment.host_times(np.array([0, S // 2, S]))
    assert host_ns.tolist() == [50, S // 2 + 10_050, S + 20_050]
    assert error_ns.tolist() == [50, pytest.approx(50 + segment.rate_change * S / 2, abs=1), 50]


def test_a_wide_bracket_does_not_loosen_narrow_ones() -> None:
    narrow = [(at, at, at + 100) for at in (0, 2000)]
    with_wide = [narrow[0], (1000, 1000, 90_000), narrow[1]]
    (one,), (other,) = fit_segments(readings(*narrow)), fit_segments(readings(*with_wide))
    assert one.host_times(np.array([1000]))[0] == pytest.approx(other.host_times(np.array([1000]))[0], abs=3)
    assert other.host_times(np.array([1000]))[1][0] <= 55


def test_what_no_drift_explains_begins_a_stretch() -> None:
    before = [(at, at, at + 10) for at in range(0, 5000, 1000)]
    after = [(at + 700_000, at, at + 10) for at in range(5000, 10_000, 1000)]
    segments = fit_segments(readings(*before, *after))
    assert ([each.n_readings for each in segments], [each.base_ns for each in segments]) == ([5, 5], [0, -700_000])
    segments = fit_segments(readings((S, 0, 10), (S + 500, 500, 510), (0, 1000, 1010), (500, 1500, 1510)))
    assert [each.n_readings for each in segments] == [2, 2]
    assert segments[1].host_times(np.array([250]))[0].tolist() == [1255]
    assert [each.n_readings for each in fit_segments(readings((1000, 5000, 4000)))] == [1]
    empty = np.empty(0, dtype=np.int64)
    assert fit_segments(ClockReadings(device_ns=empty, host_before_ns=empty, host_after_ns=empty)) == ()


def test_a_rate_that_changes_widens_what_is_allowed() -> None:
    """Where no single rate fits all readings, the rate may vary by as much as they show."""
    bent = [(at, at + max(0, at - S) // 5000, at + max(0, at - S) // 5000 + 10) for at in range(0, 2 * S + 1, S // 10)]
    (segment,) = fit_segments(readings(*bent))
    assert segment.rate_change > 90e-6
    truth = [at + max(0, at - S) // 5000 + 5 for at in range(0, 2 * S, S // 7)]
    host_ns, error_ns = segment.host_times(np.arange(0, 2 * S, S // 7))
    assert (np.abs(host_ns - truth) <= error_ns + 1).all()


def test_an_hours_readings_are_fitted_and_all_of_them_bound() -> None:
    """40000 readings take no memory for all their pairs, their rate is right, and each still bounds the offset near it.

    Each pair alone would take 6 GB an array. Between two readings 90 ms apart the error is half of the bracket and what
    the rate may change by in 45 ms, not in the seconds between those that the rate was taken of.
    """
    n, period_ns = 40_000, 90_000_000
    host_ns = np.arange(n) * period_ns
    device_ns = host_ns - np.rint(host_ns * 20e-6).astype(np.int64)
    after_ns = host_ns + np.where(np.arange(n) % 40 == 3, 100, 500)
    tracemalloc.start()
    (segment,) = fit_segments(ClockReadings(device_ns=device_ns, host_before_ns=host_ns - 100, host_after_ns=after_ns))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 200e6
    assert (segment.n_readings, segment.rate) == (n, pytest.approx(20e-6, abs=1e-9))
    middles_ns = (host_ns[1:] + host_ns[:-1]) // 2
    found_ns, error_ns = segment.host_times(middles_ns - np.rint(middles_ns * 20e-6).astype(np.int64))
    assert (np.abs(found_ns - middles_ns) <= error_ns + 1).all()
    assert error_ns.max() < 300 + 1.1 * LEAST_RATE_CHANGE * period_ns / 2
