"""Readings of a device's clock."""

from __future__ import annotations

import numpy as np

from perfsuite.trace.opencl.clock_readings import MOST_READINGS, call_readings, joined, timer_readings

from ...synthetic_opencl import EPOCH_NS, drifting, steady_commands, timer_point, trace


def test_the_timers_readings_are_those_of_the_device() -> None:
    """Readings come in the order of the host's time, those of another device left out."""
    points = [timer_point(EPOCH_NS + at, int, device=at % 2) for at in (4, 2, 1, 0)]
    found = timer_readings(trace([], clock_points=points), 0)
    assert (found.device_ns - EPOCH_NS).tolist() == [0, 2, 4]
    assert found.lower_ns.tolist() == [-500] * 3
    assert found.upper_ns.tolist() == [500] * 3


def test_of_many_calls_the_shortest_are_taken() -> None:
    """There are no more readings than stretches, each the shortest call of its own."""
    commands = np.concatenate(steady_commands(10 * MOST_READINGS + 3, drifting()))
    commands["host_end_ns"][5::11] -= 500
    found = call_readings(trace([commands]), 0, commands)
    assert MOST_READINGS // 2 < found.device_ns.size <= MOST_READINGS
    assert ((found.host_after_ns - found.host_before_ns) == 1500).mean() > 0.9


def test_few_calls_are_all_taken() -> None:
    """Each of a few commands is a reading, and none of none."""
    commands = np.concatenate(steady_commands(5, drifting()))
    assert call_readings(trace([commands]), 0, commands).device_ns.tolist() == commands["queued_ns"].tolist()
    assert call_readings(trace([]), 0, commands[:0]).device_ns.size == 0


def test_joined_readings_are_in_order() -> None:
    """Readings of two kinds are put in the order of the host's time."""
    halves = [timer_readings(trace([], clock_points=[timer_point(at, int) for at in ats]), 0) for ats in ((1, 5), (3,))]
    assert joined(*halves).device_ns.tolist() == [1, 3, 5]
