"""What a timeline comes to."""

from __future__ import annotations

import json

from perfsuite.records.engine_trace import EventKind, Events, ThreadState
from perfsuite.report.timeline.summary import plain_timeline, timeline_summary
from perfsuite.testing.engine_traces import EPOCH_NS, engine_trace, event

from ...synthetic_timeline import busy_trace


def test_the_summary_is_there() -> None:
    plain = json.loads(json.dumps(plain_timeline(timeline_summary(busy_trace())), allow_nan=False))
    assert plain["n_by_kind"]["kernel"] == 6
    assert [each["tid"] for each in plain["threads"]] == [4711, 4712]
    assert plain["held_up"][0]["name"] == "Qcur-0"
    assert plain["held_up"][0]["preempted"] == [4712]
    first = plain["preemptions"][0]
    assert (first["start_ns"], first["delay_ns"], first["cpu"]) == (EPOCH_NS + 5_000, 3_000, 1)
    assert (first["tid"], first["instead"], first["was_running"]) == (4712, None, True)
    plain = plain_timeline(timeline_summary(engine_trace([])))
    assert plain["span_ns"] is None
    assert plain["cut"] is None
    assert plain["threads"][0]["running_ns"] is None
    assert plain["preemptions"] == plain["held_up"] == []


def state(value: ThreadState, start_ns: int, end_ns: int, cpu: int) -> Events:
    return event(EventKind.THREAD_STATE, start_ns, end_ns, value=value, thread=0, cpu=cpu)


def test_a_thread_that_goes_on_elsewhere_has_moved() -> None:
    """Two changes of the processor are two, whatever was between; processors it only waited for do not count."""
    states = [
        state(ThreadState.RUNNING, 0, 10, 0),
        state(ThreadState.RUNNABLE, 10, 20, 1),
        state(ThreadState.RUNNING, 20, 30, 0),
        state(ThreadState.RUNNING, 30, 40, 1),
        state(ThreadState.IDLE, 40, 50, -1),
        state(ThreadState.RUNNING, 50, 60, 0),
    ]
    times = timeline_summary(engine_trace(states)).threads[0]
    assert (times.n_migrations, times.running_ns, times.runnable_ns, times.idle_ns) == (2, 40, 10, 10)
