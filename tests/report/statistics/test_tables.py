"""Statistics on the terminal."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from perfsuite.records.engine_trace import EngineTrace, EventFlag, EventKind
from perfsuite.report.sheet import Sheet
from perfsuite.report.statistics.tables import plain_crossover, plain_statistics, statistics_tables
from perfsuite.testing.engine_traces import engine_trace, event
from perfsuite.trace.statistics.crossover import crossover
from perfsuite.trace.statistics.statistics_view import trace_statistics
from tests.conftest import Golden

from ...synthetic_statistics import attention, experts_of, law_trace, norm, product, step_events

SIZES = (64, 128, 256)
JSON_GRAPH = (*(product(f"ffn_{size}", 64, size) for size in SIZES), attention(256))


def test_statistics_are_json() -> None:
    experts = experts_of((step, 0, [[step % 3, 4]]) for step in range(20))
    trace = law_trace(JSON_GRAPH, 20, lambda step, at, _: 1_000 * (at + 1) + 10 * step, experts=experts, n_experts=8)
    plain = json.loads(json.dumps(plain_statistics(trace_statistics(trace)), allow_nan=False))
    assert plain["schema"] == 1
    assert plain["tokens"]["context"] == list(range(1, 21))
    assert plain["tokens"]["growth"]["slope_ns"] == pytest.approx(40.0)
    assert plain["tokens"]["attention_share_ratio"] == pytest.approx(0.25)
    products = next(each for each in plain["operators"] if each["op"] == "MUL_MAT")
    assert [each["m"] for each in products["dimensions"]] == list(SIZES)
    assert products["fit_ns_over_work"]["n_points"] == 3
    assert (len(plain["threads"]), len(plain["balances"]), len(plain["experts"])) == (2, 4, 8)
    plain = plain_statistics(trace_statistics(engine_trace(graphs=())))
    assert plain["tokens"]["growth"] is None
    assert plain["tokens"]["attention_share_ratio"] is None
    trace = law_trace(JSON_GRAPH, 5, lambda _step, at, _thread: 1_000 * (at + 1))
    plain = json.loads(json.dumps(plain_crossover(crossover(trace, trace)), allow_nan=False))
    products = next(each for each in plain["operators"] if each["op"] == "MUL_MAT")
    assert products["winner"] == "cpu"
    assert [each["speedup_ratio"] for each in products["dimensions"]] == [1.0, 1.0, 1.0]
    assert products["cpu_ns_over_work"] == products["device_ns_over_work"]


GRAPH = (product("Qcur", 64, 64), attention(256), norm())


def law(step: int, position: int, thread: int) -> int:
    """Return attention that grows by 40 ns a step, and a norm of thread 0's alone."""
    return (5_000, 5_000 + 40 * step, (3_000, 100)[thread])[position]


def printed(trace: EngineTrace, n_top: int = 10) -> str:
    out = io.StringIO()
    console = Console(file=out, width=160)
    for each in statistics_tables(trace_statistics(trace), n_top):
        console.print(each.table() if isinstance(each, Sheet) else each)
    return out.getvalue()


def test_statistics_are_told_in_lines_and_tables(golden: Golden) -> None:
    """Growth and who carries it; the first rows; nothing; derived ends; steps without operators; what is doubtful."""
    derived = engine_trace(step_events(0, law, len(GRAPH), flags=EventFlag.END_DERIVED), graphs=(GRAPH,))
    steps = [
        event(EventKind.TOKEN, 100 * at, 100 * at + time_ns, value=1, thread=0, iteration=at)
        for at, time_ns in enumerate((50, 58, 53, 57, 58, 51, 52, 56, 54))
    ]
    experts = experts_of((step, 3, [[1, 2 + step]]) for step in range(4))
    doubtful = engine_trace(graphs=(), experts=experts, n_experts=8, cut="at byte 5", problems=("a gap",))
    shown = (
        printed(law_trace(GRAPH, 30, law)),
        printed(law_trace(GRAPH, 30, law), n_top=1),
        *map(printed, (engine_trace(graphs=()), derived, engine_trace(steps, graphs=()), doubtful)),
    )
    golden("report/statistics.txt", "\n".join(line.rstrip() for each in shown for line in each.splitlines()) + "\n")
