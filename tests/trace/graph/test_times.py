"""Medians of a graph's operators."""

from __future__ import annotations

import numpy as np

from perfsuite.records.engine_trace import NOTHING, EventKind, Events
from perfsuite.testing.engine_traces import engine_trace, event
from perfsuite.trace.graph.times import node_times
from perfsuite.trace.statistics.operator_runs import operator_runs


def part(evaluation: int, node: int, thread: int, start_ns: int, end_ns: int, counters: int = NOTHING) -> Events:
    """Return an operator on a thread, in an evaluation that begins every 1000 ns."""
    at = evaluation * 1000
    place = {"graph": 0, "node": node, "evaluation": evaluation, "thread": thread, "counters": counters}
    return event(EventKind.OPERATOR, at + start_ns, at + end_ns, **place)


def test_an_operator_lasts_from_the_first_entry_to_the_last_return() -> None:
    """Of three evaluations the median of 60, 70 and 300 ns, from 10 ns after the graph's first entry on."""
    events = []
    for number, end in enumerate((70, 80, 310)):
        events += [part(number, 0, 0, 0, 10), part(number, 1, 0, 10, 40), part(number, 1, 1, 15, end)]
    times, wall_ns = node_times(operator_runs(engine_trace(events)), 0)
    assert (times[1].time_ns, times[1].start_ns, times[1].n_evaluations) == (70.0, 10.0, 3)
    assert times[0].time_ns == 10.0
    assert wall_ns == 80.0


def test_counters_are_summed_over_threads() -> None:
    """Medians of the sums; an evaluation in which a thread did not count has none."""
    counters = np.asarray([[1, 5], [2, 5], [10, 5], [20, NOTHING]], dtype=np.int64)
    events = [part(number, 0, thread, 0, 5, 2 * number + thread) for number in (0, 1) for thread in (0, 1)]
    trace = engine_trace(events, counter_names=("cycles", "faults"), counters=counters)
    times, _ = node_times(operator_runs(trace), 0)
    assert times[0].counters == (16.5, 10.0)


def test_what_was_not_counted_is_none() -> None:
    """A counter without any value, and operators that have no row."""
    trace = engine_trace(
        [part(0, 0, 0, 0, 5, 0), part(0, 1, 0, 5, 9)],
        counter_names=("cycles",),
        counters=np.asarray([[NOTHING]], dtype=np.int64),
    )
    times, _ = node_times(operator_runs(trace), 0)
    assert (times[0].counters, times[1].counters) == ((None,), (None,))


def test_a_graph_that_never_ran_has_no_times() -> None:
    """Neither of its operators nor of the whole."""
    assert node_times(operator_runs(engine_trace([part(0, 0, 0, 0, 5)])), 1) == ({}, None)
