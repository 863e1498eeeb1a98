"""Who had a processor."""

from __future__ import annotations

import pytest

from perfsuite.records.engine_trace import EventKind, Events, ThreadState
from perfsuite.testing.engine_traces import engine_trace, event
from perfsuite.trace.timeline.occupants import Occupants


def state(value: ThreadState, start_ns: int, end_ns: int, *, thread: int, cpu: int) -> Events:
    """Return what a thread did."""
    return event(EventKind.THREAD_STATE, start_ns, end_ns, value=value, thread=thread, cpu=cpu)


@pytest.mark.parametrize(
    ("start_ns", "end_ns", "thread", "cpu", "found"),
    [
        (10, 20, 1, 0, True),
        (10, 20, 0, 0, False),
        (10, 20, 1, 1, False),
        (20, 30, 1, 0, False),
        (0, 5, 1, 0, False),
        (14, 99, 1, 0, True),
    ],
)
def test_an_occupant_ran_there_and_then(start_ns: int, end_ns: int, thread: int, cpu: int, found: bool) -> None:
    """It is another thread, on the same processor, at least for a part of the wait."""
    wait = state(ThreadState.RUNNABLE, start_ns, end_ns, thread=thread, cpu=cpu)
    trace = engine_trace([state(ThreadState.RUNNING, 5, 15, thread=0, cpu=0), wait])
    assert Occupants(trace).of(wait[0]) == (trace.threads[0] if found else None)
