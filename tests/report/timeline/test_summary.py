"""What a timeline comes to."""

from __future__ import annotations

import io
import json

from rich.console import Console

from perfsuite.records.engine_trace import EngineTrace, EventFlag, EventKind, Events, ThreadState
from perfsuite.report.timeline.summary import plain_timeline, timeline_lines, timeline_summary, timeline_tables
from perfsuite.testing.engine_traces import EPOCH_NS, engine_trace, event, node, small_trace, tensor
from tests.conftest import Golden

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


def printed(trace: EngineTrace, n_top: int = 12) -> str:
    out = io.StringIO()
    for table in timeline_tables(timeline_summary(trace), n_top):
        Console(file=out, width=200).print(table.table())
    return out.getvalue()


def held_up_trace(n_nodes: int = 1, name: str = "ffn_up-7") -> EngineTrace:
    """Return operators in each of which thread 1 waits 40 µs for CPU 1, and thread 0 for thread 1."""
    events = []
    for number in range(n_nodes):
        at, place = number * 200_000, {"graph": 0, "node": number, "evaluation": 0, "iteration": 3}
        events += [
            event(EventKind.OPERATOR, at, at + 50_000, thread=0, **place),
            event(EventKind.OPERATOR, at, at + 100_000, thread=1, **place),
            event(EventKind.THREAD_STATE, at, at + 20_000, thread=1, cpu=1, value=ThreadState.RUNNING),
            event(EventKind.THREAD_STATE, at + 20_000, at + 60_000, thread=1, cpu=1, value=ThreadState.RUNNABLE),
        ]
    graph = tuple(node("MUL_MAT", tensor(f"{name}{number or ''}")) for number in range(n_nodes))
    return engine_trace(events, graphs=(graph,))


def test_a_timeline_is_told_in_lines_and_tables(golden: Golden) -> None:
    """Operators held up, with who waited; nothing held up; states that nobody recorded; derived starts; losses."""
    derived = event(EventKind.OPERATOR, 0, 9, thread=0, evaluation=0, graph=0, node=0, flags=EventFlag.START_DERIVED)
    unknown = engine_trace([event(EventKind.TOKEN, 0, 5, value=1)])
    shown = (held_up_trace(n_nodes=2), small_trace(), unknown, engine_trace([derived]), busy_trace())
    told = ("\n".join([*timeline_lines(timeline_summary(each)), printed(each)]) for each in shown)
    golden("report/timeline.txt", "\n".join(line.rstrip() for each in told for line in each.splitlines()) + "\n")
