"""How evenly threads share the work."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.records.engine_trace import EngineTrace, EventFlag, TraceRecorder
from perfsuite.testing.engine_traces import engine_trace
from perfsuite.trace.statistics.operator_runs import operator_runs, operator_table
from perfsuite.trace.statistics.thread_balance import RoleBalance, least_thread_time, role_balances, thread_shares

from ...synthetic_statistics import law_trace, norm, product, step_events

GRAPH = (product("Qcur", 64, 64), norm())


def law(step: int, position: int, thread: int) -> int:
    """Return a product that both threads share, and a norm that thread 0 does alone, except one disturbed step."""
    disturbed = 500_000 if step == 3 and position == 0 and thread == 1 else 0
    return 10_000 + disturbed if position == 0 else (8_000, 100)[thread]


def balances(trace: EngineTrace) -> dict[str, RoleBalance]:
    return {each.role: each for each in role_balances(operator_runs(trace), operator_table(trace))}


def test_shared_work_and_lone_work_are_kept_apart() -> None:
    found = balances(law_trace(GRAPH, 10, law))
    assert found["Qcur"].balance_ratio == 1.0
    assert not found["Qcur"].is_on_one_thread
    assert found["attn_norm"].balance_ratio == pytest.approx(8_000 * 2 / 8_100)
    assert found["attn_norm"].is_on_one_thread
    assert found["attn_norm"].idle_ns == pytest.approx(10 * 7_900)


def test_what_is_not_the_threads_own_shows_no_balance() -> None:
    events = [each for step in range(10) for each in step_events(step, law, 2, flags=EventFlag.END_DERIVED)]
    trace = engine_trace(events, graphs=(GRAPH,))
    assert (balances(trace), thread_shares(trace), least_thread_time(operator_runs(trace))) == ({}, (), 0)
    events = [each for step in range(10) for each in step_events(step, law, 2, flags=EventFlag.START_DERIVED)]
    assert thread_shares(engine_trace(events, graphs=(GRAPH,), recorder=TraceRecorder.CALLBACK)) == ()
    assert thread_shares(replace(law_trace(GRAPH, 3, law), recorder=TraceRecorder.OPENCL)) == ()
    events = [each for step in range(10) for each in step_events(step, law, 2, n_threads=1)]
    assert balances(engine_trace(events, graphs=(GRAPH,))) == {}


def test_threads_are_busy_or_wait() -> None:
    first, second = thread_shares(law_trace(GRAPH, 3, law))
    assert (first.tid, first.busy_ns, first.waiting_ns) == (4711, 3 * 18_000, 0)
    assert (second.tid, second.busy_ns, second.waiting_ns) == (4712, 3 * 10_100, 3 * 7_900 - 0)
    assert (second.busy_ratio, first.n_operators, second.n_operators) == (pytest.approx(10_100 / 18_000), 6, 6)
    assert least_thread_time(operator_runs(law_trace(GRAPH, 10, law))) == 100
