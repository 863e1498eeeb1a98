"""Counters over time."""

from __future__ import annotations

import numpy as np

from perfsuite.records.engine_trace import NOTHING, EventKind, Events
from perfsuite.testing.engine_traces import EPOCH_NS, engine_trace, event
from perfsuite.trace.timeline.counters import counter_points


def operator(start_ns: int, end_ns: int, counters: int, *, evaluation: int = 0, thread: int = 0) -> Events:
    """Return an operator that counted."""
    return event(EventKind.OPERATOR, start_ns, end_ns, counters=counters, evaluation=evaluation, thread=thread)


def points(*events: Events, counters: list[list[int]]) -> dict[int, list[list[tuple[int, int]]]]:
    """Return by thread and counter the times after the epoch and the values."""
    trace = engine_trace(events, counter_names=("cycles", "faults"), counters=np.asarray(counters, dtype=np.int64))
    found = counter_points(trace, trace.of(EventKind.OPERATOR))
    return {
        thread: [[(ns - EPOCH_NS, value) for ns, value, _ in one.tolist()] for one in of_thread]
        for thread, of_thread in found.items()
    }


def test_a_rate_is_the_count_over_the_time() -> None:
    """500 cycles in 250 ns are 2 per ns, from the start of the operator on; behind the evaluation it is 0."""
    found = points(
        operator(0, 250, 0), operator(300, 400, 1), operator(900, 1000, 2, evaluation=1), counters=[[500, 1]] * 3
    )
    rates = [(0, 2_000_000_000), (300, 5_000_000_000), (400, 0), (900, 5_000_000_000), (1000, 0)]
    assert found[0][0] == rates
    assert found[0][1][:2] == [(0, 4_000_000), (300, 10_000_000)]


def test_threads_and_counters_are_apart() -> None:
    """Each thread has its own points, and what was not counted has none."""
    found = points(operator(0, 100, 0), operator(0, 200, 1, thread=1), counters=[[100, NOTHING], [100, NOTHING]])
    assert found == {0: [[(0, 10**9), (100, 0)], []], 1: [[(0, 5 * 10**8), (200, 0)], []]}


def test_an_operator_without_counters_or_time_has_no_rate() -> None:
    """No row, no end and no time each leave nothing to divide."""
    assert points(operator(0, 100, NOTHING), operator(5, NOTHING, 0), operator(7, 7, 0), counters=[[1, 1]]) == {}
