"""A device's clock put on the host's, with made-up clocks."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfsuite.records.opencl_commands import ClockPoint, ClockSource, Commands
from perfsuite.trace.opencl.device_clock import (
    AlignedTrace,
    ClockBasis,
    align,
    within,
)
from perfsuite.trace.opencl.stamps import Anomaly, anomaly_counts
from tests.synthetic_opencl import DEVICE, EPOCH_NS, command, drifting, queue, steady_commands, timer_point, trace

PERIOD_NS = 100_000
ALIGNED = align(trace(steady_commands(10, int, period_ns=PERIOD_NS)))


def test_only_what_was_enqueued_within_is_left() -> None:
    first, last = EPOCH_NS + 2 * PERIOD_NS, EPOCH_NS + 4 * PERIOD_NS
    part = within(ALIGNED, [(first, last), (last + PERIOD_NS, last + PERIOD_NS + 1)])
    assert part.trace.commands["sequence"].tolist() == [2, 3, 5]
    assert np.array_equal(part.start_ns, ALIGNED.start_ns[[2, 3, 5]])
    assert part.anomalies.shape == part.device.shape == part.queued_ns.shape == (3,)
    edges = [EPOCH_NS + step * PERIOD_NS for step in range(11)]
    part = within(ALIGNED, list(pairwise(edges)))
    assert (part.trace.commands.size, within(ALIGNED, []).trace.commands.size) == (10, 0)


#: A device's clock that has no relation to the host's.
FAR_NS = -169_000_000_000_000

MS = 1_000_000


def true_error_ns(aligned: AlignedTrace, truth: Callable[[Commands], list[tuple[int, ...]]]) -> int:
    """Return the largest distance of any time of any command that is not odd from what it truly was."""
    found = np.stack([aligned.queued_ns, aligned.submit_ns, aligned.start_ns, aligned.end_ns], axis=1)
    apart = np.abs(found - np.array(truth(aligned.trace.commands)))[aligned.anomalies == 0]
    return int(apart.max(initial=0))


def stated_ns(aligned: AlignedTrace) -> int:
    (found,) = aligned.clocks
    assert found.error_ns is not None
    return found.error_ns


def steady_truth(commands: Commands, period_ns: int = 100_000) -> list[tuple[int, ...]]:
    starts_ns = commands["host_start_ns"].tolist()
    return [(at + 1000, at + 2000, at + period_ns // 4, at + period_ns // 2) for at in starts_ns]


def counted(aligned: AlignedTrace) -> dict[Anomaly, int]:
    return dict(anomaly_counts(aligned.anomalies))


@pytest.mark.parametrize(("offset_ns", "ppm"), [(0, 0.0), (FAR_NS, -50.0), (10**15, 400.0)])
def test_an_offset_and_a_drift_are_taken_off(offset_ns: int, ppm: float) -> None:
    """With a timer read every 10 ms to 1 µs, a second of commands is within the stated error, which is small."""
    clock = drifting(offset_ns=offset_ns, ppm=ppm)
    points = [timer_point(EPOCH_NS + i * 10 * MS, clock) for i in range(101)]
    aligned = align(trace(steady_commands(10_000, clock), clock_points=points))
    (found,) = aligned.clocks
    assert (found.basis, found.n_readings) == (ClockBasis.TIMER, 101)
    assert found.drift_ppm == pytest.approx(ppm, abs=1.1)
    assert true_error_ns(aligned, steady_truth) <= stated_ns(aligned) + 1 <= 600
    assert counted(aligned) == {}


def test_a_device_without_a_timer_is_aligned_by_its_enqueue_calls() -> None:
    """Calls of 2 µs leave an error of 1 µs, also where a timer puts the commands outside of them."""
    clock = drifting(offset_ns=FAR_NS, ppm=50.0)
    aligned = align(trace(steady_commands(10_000, clock)))
    (found,) = aligned.clocks
    assert (found.basis, found.drift_ppm) == (ClockBasis.ENQUEUE_CALLS, pytest.approx(50.0, abs=3.0))
    assert true_error_ns(aligned, steady_truth) <= stated_ns(aligned) + 1 <= 1100
    clock = drifting(offset_ns=FAR_NS)
    other = drifting(offset_ns=FAR_NS + 5 * MS)
    points = [timer_point(EPOCH_NS + i * MS, other, before_ns=10, after_ns=10) for i in range(10)]
    aligned = align(trace(steady_commands(100, clock), clock_points=points))
    assert ([found.basis for found in aligned.clocks], counted(aligned)) == ([ClockBasis.ENQUEUE_CALLS], {})


def test_markers_count_as_enqueue_calls() -> None:
    """Where the program's calls are long, the layer's own short ones make the error."""
    clock = drifting(offset_ns=FAR_NS)
    markers = [
        ClockPoint(
            device=0,
            source=ClockSource.MARKER,
            device_ns=clock(at_ns),
            host_before_ns=at_ns - 100,
            host_after_ns=at_ns + 100,
        )
        for at_ns in range(EPOCH_NS, EPOCH_NS + 201 * MS, MS)
    ]
    commands = steady_commands(1000, clock, period_ns=200_000, call_ns=40_000)
    (alone,) = align(trace(commands)).clocks
    (helped,) = align(trace(commands, clock_points=markers)).clocks
    assert alone.basis is helped.basis is ClockBasis.ENQUEUE_CALLS
    assert alone.error_ns > 15_000
    assert helped.error_ns < 200


def test_the_error_grows_with_the_distance_from_the_readings() -> None:
    """Two readings 10 s apart leave more doubt about the middle than readings of every 10 ms."""
    clock = drifting(offset_ns=FAR_NS, ppm=20.0)
    commands = steady_commands(100, clock, period_ns=100 * MS, call_ns=MS)
    few = [timer_point(EPOCH_NS + at, clock) for at in (0, 10_000 * MS)]
    many = [timer_point(EPOCH_NS + i * 10 * MS, clock) for i in range(1001)]
    (rare,), (often,) = (align(trace(commands, clock_points=points)).clocks for points in (few, many))
    assert often.error_ns < 600
    assert rare.error_ns > 5000


@pytest.mark.parametrize("has_timer", [True, False])
def test_a_step_of_the_clock_is_in_the_error(has_timer: bool) -> None:
    def clock(host_ns: int) -> int:
        return host_ns + FAR_NS + (3 * MS if host_ns >= EPOCH_NS + 500 * MS else 0)

    points = [timer_point(EPOCH_NS + i * 10 * MS, clock) for i in range(101)] if has_timer else []
    aligned = align(trace(steady_commands(10_000, clock), clock_points=points))
    assert counted(aligned) == {}
    assert true_error_ns(aligned, steady_truth) <= 1.01 * stated_ns(aligned) <= 4 * MS


def test_each_device_has_its_own_clock() -> None:
    clocks = [drifting(offset_ns=FAR_NS, ppm=30.0), drifting(offset_ns=7 * MS, ppm=-30.0)]
    commands = [
        each
        for i in range(500)
        for each in (
            command(2 * i, EPOCH_NS + i * MS, _times(EPOCH_NS + i * MS), clock=clocks[0], queue=1),
            command(2 * i + 1, EPOCH_NS + i * MS + 9000, _times(EPOCH_NS + i * MS + 9000), clock=clocks[1], queue=2),
        )
    ]
    aligned = align(trace(commands, queues=(queue(1), queue(2, device=1)), devices=(DEVICE, DEVICE)))
    assert ([found.device for found in aligned.clocks], aligned.device[:4].tolist()) == ([0, 1], [0, 1, 0, 1])
    assert np.abs(aligned.queued_ns - aligned.trace.commands["host_start_ns"] - 500).max() <= 501


def _times(at_ns: int) -> list[int]:
    return [at_ns + 500, at_ns + 600, at_ns + 700, at_ns + 800]


def test_a_clock_that_was_never_read_is_none() -> None:
    aligned = align(trace([command(i, EPOCH_NS + i, [0, 0, 0, 0]) for i in range(3)]))
    assert (aligned.clocks, counted(aligned)) == ((), {Anomaly.ZERO_TIME: 3})
    (unused,) = align(trace([], clock_points=[timer_point(EPOCH_NS, drifting())])).clocks
    assert unused.error_ns is None
    assert align(trace([])).clocks == ()


@settings(max_examples=60, deadline=None)
@given(
    offset_ns=st.integers(-EPOCH_NS + 10**9, 10**17),
    ppm=st.floats(-300, 300),
    seed=st.integers(0, 10**6),
    n_points=st.integers(1, 40),
    width_ns=st.integers(2, 50_000),
)
def test_no_time_is_off_by_more_than_the_stated_error(
    offset_ns: int, ppm: float, seed: int, n_points: int, width_ns: int
) -> None:
    source, commands, truth = _jittered(offset_ns, ppm, random.Random(seed), n_points, width_ns)
    for points in (source, ()):
        aligned = align(trace(commands, queues=(queue(is_out_of_order=True),), clock_points=points))
        assert counted(aligned) == {}
        assert true_error_ns(aligned, lambda _: truth) <= stated_ns(aligned) + 1


def _jittered(
    offset_ns: int, ppm: float, chance: random.Random, n_points: int, width_ns: int
) -> tuple[list[ClockPoint], list[Commands], list[tuple[int, ...]]]:
    """Return readings and commands at random times, the device's time anywhere within its bracket."""
    clock = drifting(offset_ns=offset_ns, ppm=ppm)
    points = []
    for at_ns in sorted(chance.sample(range(EPOCH_NS, EPOCH_NS + 2000 * MS), n_points)):
        before_ns = chance.randint(1, width_ns)
        points.append(timer_point(at_ns, clock, before_ns=before_ns, after_ns=chance.randint(1, width_ns)))
    commands, truth = [], []
    at_ns = EPOCH_NS
    for sequence in range(60):
        at_ns += chance.randint(width_ns, 50 * MS)
        call_ns = chance.randint(2, width_ns)
        queued_ns = at_ns + chance.randint(1, call_ns - 1)
        times = (
            queued_ns,
            queued_ns + 10,
            queued_ns + 20 + chance.randint(0, 1000),
            queued_ns + chance.randint(1100, MS),
        )
        commands.append(command(sequence, at_ns, times, clock=clock, call_ns=call_ns))
        truth.append(times)
    return points, commands, truth
