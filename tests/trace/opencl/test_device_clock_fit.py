"""The offset and the drift between two clocks."""

from __future__ import annotations

import numpy as np
import pytest

from perfsuite.records.engine_trace import Times
from perfsuite.trace.opencl.device_clock import MOST_RATE, fitted

S = 1_000_000_000


def readings(*rows: tuple[int, int, int]) -> Times:
    """Return readings of device time, host time before and host time after."""
    return np.array(rows, dtype=np.int64)


def test_one_reading_gives_the_middle_and_half_of_its_bracket() -> None:
    """At the reading the error is half of the bracket; away from it, it grows as fast as clocks may drift."""
    at_ns = np.array([1000, 1000 + S])
    line = fitted(readings((1000, 5000, 5100)), at_ns)
    assert line.host_times(at_ns).tolist() == [5050, 5050 + S]
    assert line.error_ns(at_ns).tolist() == [50, pytest.approx(50 + MOST_RATE * S, abs=1)]


def test_two_readings_give_a_rate() -> None:
    at_ns = np.array([0, S // 2, S])
    line = fitted(readings((0, 0, 100), (S, S + 20_000, S + 20_100)), at_ns)
    assert line.rate == pytest.approx(20e-6)
    assert line.host_times(at_ns).tolist() == [50, S // 2 + 10_050, S + 20_050]
    assert line.error_ns(at_ns).tolist() == [50, pytest.approx(50 + 5000 + 50, abs=1), 50]


def test_wide_brackets_do_not_loosen_narrow_ones() -> None:
    """Of readings that were held up, those that make the error less are left out."""
    rows = [(at, at, at + (100 if at % 3000 else 90_000)) for at in range(0, 60_000, 1000)]
    at_ns = np.arange(0, 60_000, 500)
    line = fitted(readings(*rows), at_ns)
    assert line.error_ns(at_ns).max() < 60
    assert np.abs(line.host_times(at_ns) - at_ns - 50).max() <= 1


def test_what_is_no_line_is_in_the_error() -> None:
    """A clock that stepped is off by half of the step at least, and the error says so."""
    rows = [(at + (700_000 if at > 5000 else 0), at, at + 10) for at in range(0, 10_000, 1000)]
    at_ns = readings(*rows)[:, 0]
    line = fitted(readings(*rows), at_ns)
    apart_ns = np.abs(line.host_times(at_ns) - readings(*rows)[:, 1])
    assert (apart_ns <= line.error_ns(at_ns) + 1).all()
    assert apart_ns.max() > 300_000
