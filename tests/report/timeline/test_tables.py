"""A timeline on the terminal."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from perfsuite.records.engine_trace import EngineTrace, EventFlag, EventKind, ThreadState
from perfsuite.report.timeline.summary import timeline_summary
from perfsuite.report.timeline.tables import timeline_lines, timeline_tables
from perfsuite.testing.engine_traces import engine_trace, event, node, small_trace, tensor

from ...synthetic_timeline import busy_trace


def printed(trace: EngineTrace, n_top: int = 12) -> str:
    """Return all tables as a wide terminal shows them."""
    out = io.StringIO()
    for table in timeline_tables(timeline_summary(trace), n_top):
        Console(file=out, width=200).print(table)
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


def test_a_delayed_operator_is_named() -> None:
    """Operator, thread, processor, delay, and who waited at the barrier."""
    told = printed(held_up_trace())
    row = next(line for line in told.splitlines() if line.startswith("MUL_MAT ffn_up-7")).split()
    assert row == ["MUL_MAT", "ffn_up-7", "1", "40.0", "µs", "40.0", "µs", "40.0", "µs", "4712", "4711"]
    last = told.splitlines()[-1].split()
    assert last == ["MUL_MAT", "ffn_up-7", "llama-cli", "4712", "1", "3", "40.0", "µs", "another", "program"]


def test_the_lines_say_what_pre_emption_came_to_and_what_is_missing() -> None:
    """How often, where and how long operators were held up; derived times have waiting in them, losses have a line."""
    told = "the time in operators has waiting for other threads in it: not every start and end was recorded"
    assert told not in list(timeline_lines(timeline_summary(small_trace(1))))
    derived = event(EventKind.OPERATOR, 0, 9, thread=0, evaluation=0, graph=0, node=0, flags=EventFlag.START_DERIVED)
    assert told in list(timeline_lines(timeline_summary(engine_trace([derived]))))
    lines = list(timeline_lines(timeline_summary(held_up_trace(n_nodes=2))))
    assert lines == [
        "8 events by the ebpf recorder over 300 µs: operator 4, thread state 4",
        "pre-emption: operators waited 2 times for a processor on CPU 1; that held up 2 operators by 80.0 µs in all",
    ]
    lines = list(timeline_lines(timeline_summary(busy_trace())))
    assert "3 events lost" in lines
    assert "the trace breaks off: the file ends within a record" in lines
    assert "a clock ran backwards" in lines


def test_no_pre_emption_and_not_known_are_told_apart() -> None:
    """Threads that ran throughout were not pre-empted; of threads without states nobody knows."""
    quiet, unknown = small_trace(), engine_trace([event(EventKind.TOKEN, 0, 5, value=1)])
    assert list(timeline_lines(timeline_summary(quiet)))[-1] == "pre-emption: no operator waited for a processor"
    assert "not known" in list(timeline_lines(timeline_summary(unknown)))[-1]
    assert "held up" not in printed(quiet)


def test_tables_say_when_there_is_more() -> None:
    """Of five operators the first two are shown; brackets of a tensor's name are, escapes are not."""
    told = printed(held_up_trace(n_nodes=5), n_top=2)
    assert "Operators held up by other work: the first 2 of 5" in told
    assert told.count("MUL_MAT ffn_up") == 4
    told = printed(held_up_trace(name="[red]x\x1b[2J"))
    assert "MUL_MAT [red]x�[2J" in told
    lines = timeline_lines(timeline_summary(replace(held_up_trace(), cut="\x1b]0;x\x07", problems=("\x1b",))))
    assert "\x1b" not in "".join(lines)
