"""Operators over their threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from perfsuite.records.engine_trace import EventFlag, EventKind, TraceRecorder
from perfsuite.records.events import Phase
from perfsuite.testing.engine_traces import engine_trace, event, small_graph
from perfsuite.testing.large_trace import large_trace
from perfsuite.trace.statistics.operator_runs import operator_runs, operator_table

from ...synthetic_statistics import product, step_events


def law(*_: int) -> int:
    return 1_000


def test_runs_find_their_operator_across_graphs() -> None:
    events = [*step_events(0, law, 4, n_tokens=8), *step_events(1, law, 1, graph=1)]
    trace = engine_trace(events, graphs=(small_graph(), (product("ffn_up", 64, 64),)))
    table, runs = operator_table(trace), operator_runs(trace)
    labels, of_run = table.labelled(runs, lambda operator, phase: (operator.role, phase))
    assert [labels[each] for each in of_run] == [
        *((role, Phase.PREFILL) for role in ("attn_norm", "Qcur", "Kcur", "sum")),
        ("ffn_up", Phase.DECODE),
    ]
    assert operator_table(replace(trace, phases=("load", "embed"))).prompt_phase is Phase.EMBED


def operator(start_ns: int, end_ns: int, **fields: int) -> np.ndarray:
    place = {"iteration": 0, "evaluation": 0, "graph": 0, "node": 0, "thread": 0}
    return event(EventKind.OPERATOR, start_ns, end_ns, **{**place, **fields})


def test_an_operator_lasts_from_the_first_entry_to_the_last_return() -> None:
    runs = operator_runs(engine_trace([operator(100, 200), operator(110, 260, thread=1), operator(300, 320, node=1)]))
    assert (runs.duration_ns.tolist(), runs.busy_ns.tolist()) == ([160, 20], [250, 20])
    assert (runs.busiest_ns.tolist(), runs.n_threads.tolist()) == ([150, 20], [2, 1])
    assert runs.has_ends.tolist() == [True, True]


def test_what_has_no_end_or_was_cut_is_left_out() -> None:
    events = [
        operator(100, -1),
        operator(200, 300, flags=EventFlag.CUT),
        operator(200, 300, node=-1),
        operator(400, 500, flags=EventFlag.END_DERIVED),
    ]
    runs = operator_runs(engine_trace(events))
    assert (len(runs), runs.has_ends.tolist()) == (1, [False])


def test_counters_are_summed_over_threads() -> None:
    counters = np.array([[1, 10], [2, -1]])
    events = [operator(100, 200, counters=0), operator(100, 200, thread=1, counters=1)]
    runs = operator_runs(engine_trace(events, counter_names=("cycles", "stalls"), counters=counters))
    assert runs.counters.tolist() == [[3, -1]]


def test_commands_of_a_device_stand_in_for_operators() -> None:
    place = {"iteration": 0, "evaluation": 0, "graph": 0, "value": 0}
    commands = [
        event(EventKind.KERNEL, 100, 150, node=1, **place),
        event(EventKind.KERNEL, 400, 450, node=1, **place),
        event(EventKind.KERNEL, 500, 600, node=-1, **place),
        operator(50, 60, node=1),
    ]
    runs = operator_runs(engine_trace(commands, kernels=("k",), recorder=TraceRecorder.OPENCL))
    assert (runs.is_device, runs.node.tolist(), runs.duration_ns.tolist()) == (True, [1], [100])


def test_the_call_says_which_steps_decode() -> None:
    """A piece of a prefill's graph is of the prefill; without calls the graph says it; nothing has none."""
    graph = (product("Qcur", 64, 64),)
    called = [*step_events(0, law, 1, n_tokens=7), *step_events(1, law, 1)]
    assert operator_runs(engine_trace(called, graphs=(graph,))).is_decode.tolist() == [False, True]
    uncalled = [each for each in called if each["kind"][0] != EventKind.TOKEN]
    assert operator_runs(engine_trace(uncalled, graphs=(graph,))).is_decode.tolist() == [True, True]
    runs = operator_runs(engine_trace(graphs=(small_graph(),), counter_names=("cycles",)))
    assert (len(runs), runs.duration_ns.size, runs.counters.shape[0]) == (0, 0, 0)


def test_every_event_of_a_long_trace_is_in_one_run() -> None:
    trace = large_trace(20_000)
    runs, events = operator_runs(trace), trace.of(EventKind.OPERATOR)
    assert int(runs.n_threads.sum()) == events.size
    assert int(runs.busy_ns.sum()) == int((events["end_ns"] - events["start_ns"]).sum())
