"""A timeline on the terminal."""

from __future__ import annotations

import io

from rich.console import Console

from perfsuite.records.engine_trace import EngineTrace, EventFlag, EventKind, ThreadState
from perfsuite.report.timeline.summary import timeline_summary
from perfsuite.report.timeline.tables import timeline_lines, timeline_tables
from perfsuite.testing.engine_traces import engine_trace, event, node, small_trace, tensor
from tests.conftest import Golden

from ...synthetic_timeline import busy_trace


def printed(trace: EngineTrace, n_top: int = 12) -> str:
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


def test_a_timeline_is_told_in_lines_and_tables(golden: Golden) -> None:
    """Operators held up, with who waited; nothing held up; states that nobody recorded; derived starts; losses."""
    derived = event(EventKind.OPERATOR, 0, 9, thread=0, evaluation=0, graph=0, node=0, flags=EventFlag.START_DERIVED)
    unknown = engine_trace([event(EventKind.TOKEN, 0, 5, value=1)])
    shown = (held_up_trace(n_nodes=2), small_trace(), unknown, engine_trace([derived]), busy_trace())
    told = ("\n".join([*timeline_lines(timeline_summary(each)), printed(each)]) for each in shown)
    golden("report/timeline.txt", "\n".join(line.rstrip() for each in told for line in each.splitlines()) + "\n")
