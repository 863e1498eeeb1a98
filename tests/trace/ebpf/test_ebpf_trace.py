"""From the eBPF recorder's log to a trace, and calls that began and ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perfsuite.errors import MeasurementError
from perfsuite.records.bpf_log_file import BpfKind, read_bpf_log
from perfsuite.records.engine_trace import NOTHING, EngineTrace, EventFlag, EventKind, Events, ThreadState
from perfsuite.records.trace_levels import TraceLevel
from perfsuite.testing.bpf_logs import (
    CPU_GUID,
    MAIN_TID,
    OPERATOR_NS,
    TOKEN_NS,
    BpfLogBuilder,
    small_log,
    small_nodes,
    tensor_layout,
)
from perfsuite.testing.engine_traces import EPOCH_NS
from perfsuite.trace.ebpf.ebpf_trace import backend_name, ebpf_trace, thread_states
from perfsuite.trace.ebpf.intervals import Intervals, intervals_of, level_changes

RUNNING, RUNNABLE, IDLE = ThreadState
States = list[tuple[int, int, int, int, int]]


def states(tmp_path: Path, log: BpfLogBuilder) -> States:
    read = read_bpf_log(log.write(tmp_path / "log"))
    found = thread_states(read, level_changes(read), EPOCH_NS + 1000)
    rows = found[["start_ns", "end_ns", "value", "cpu", "flags", "thread"]].tolist()
    return sorted((start - EPOCH_NS, end - EPOCH_NS, *rest) for start, end, *rest, tid in rows if tid == MAIN_TID)


def test_states_follow_prev_state(tmp_path: Path) -> None:
    """Switched out with prev_state 0 a thread could still run; waking who is awake begins no state."""
    log = BpfLogBuilder()
    log.add(BpfKind.SWITCH_IN, 100, cpu=1)
    log.add(BpfKind.SWITCH_OUT, 200, cpu=1, value=0)
    log.add(BpfKind.SWITCH_IN, 300, cpu=0)
    log.add(BpfKind.SWITCH_OUT, 400, cpu=0, value=1)
    log.add(BpfKind.WOKEN, 500, cpu=1)
    log.add(BpfKind.SWITCH_IN, 600, cpu=1)
    assert states(tmp_path, log) == [
        (100, 200, RUNNING, 1, 0),
        (200, 300, RUNNABLE, 1, 0),
        (300, 400, RUNNING, 0, 0),
        (400, 500, IDLE, NOTHING, 0),
        (500, 600, RUNNABLE, NOTHING, 0),
        (600, 1000, RUNNING, 1, EventFlag.CUT),
    ]
    log = BpfLogBuilder()
    log.add(BpfKind.SWITCH_IN, 100)
    log.add(BpfKind.WOKEN, 150)
    log.add(BpfKind.SWITCH_OUT, 200, value=0x100)
    log.add(BpfKind.WOKEN, 250)
    log.add(BpfKind.SWITCH_IN, 300)
    log.add(BpfKind.SWITCH_OUT, 400, value=1)
    log.add(BpfKind.WOKEN, 500)
    log.add(BpfKind.WOKEN, 550)
    found = states(tmp_path, log)
    assert [(start, state) for start, _, state, _, _ in found] == [
        (100, RUNNING),
        (200, RUNNABLE),
        (300, RUNNING),
        (400, IDLE),
        (500, RUNNABLE),
    ]


def test_states_lie_within_what_was_recorded(tmp_path: Path) -> None:
    """Before its first record a thread ran; what it does while nobody looks is unknown."""
    log = BpfLogBuilder()
    log.add(BpfKind.SWITCH_OUT, 200, cpu=1, value=2)
    assert states(tmp_path, log) == [(0, 200, RUNNING, 1, EventFlag.CUT), (200, 1000, IDLE, NOTHING, EventFlag.CUT)]
    log = BpfLogBuilder()
    log.add(BpfKind.SWITCH_IN, 100)
    log.add(BpfKind.LEVELS, 300, subject=int(TraceLevel.TOKEN), flags=1)
    log.add(BpfKind.LEVELS, 600, subject=0xFF, flags=1)
    log.add(BpfKind.SWITCH_OUT, 700, value=0)
    assert [row[:3] for row in states(tmp_path, log)] == [(100, 300, RUNNING), (700, 1000, RUNNABLE)]


def test_backends_are_named_by_their_guids(traced: Traced) -> None:
    """The guid of ggml's CPU backend is that of its source; one that nobody has heard of stays one."""
    assert backend_name(CPU_GUID) == "CPU"
    assert backend_name(memoryview(bytes(range(16)))) == "guid:000102030405060708090a0b0c0d0e0f"
    log = small_log(1)
    log.graph(80_000, 81_000, guid=bytes.fromhex("dee070a2734e4dbcb0c74fd46d4e90fe"))
    log.graph(82_000, 83_000, guid=bytes(15) + b"\x07")
    trace = traced(ended(log))
    assert trace.backends == ("CPU", "OpenCL", "guid:" + "00" * 15 + "07")
    assert trace.of(EventKind.GRAPH)["value"].tolist() == [0, 1, 2]


Traced = Callable[[BpfLogBuilder], EngineTrace]


@pytest.fixture
def traced(tmp_path: Path) -> Traced:
    return lambda log: ebpf_trace(read_bpf_log(log.write(tmp_path / "ebpf.bpflog")), tensor_layout())


def ended(log: BpfLogBuilder, **fields: int) -> BpfLogBuilder:
    log.end(1_000_000, **fields)
    return log


def spans(events: Events) -> list[tuple[int, int]]:
    return [
        (start - EPOCH_NS, end - EPOCH_NS if end != NOTHING else NOTHING)
        for start, end in zip(events["start_ns"].tolist(), events["end_ns"].tolist(), strict=True)
    ]


def of_thread(trace: EngineTrace, thread: int) -> Events:
    operators = trace.of(EventKind.OPERATOR)
    own: Events = operators[operators["thread"] == thread]
    return own


def test_tokens_graphs_and_operators_nest(traced: Traced) -> None:
    trace = traced(ended(small_log(2)))
    assert (trace.cut, trace.problems, trace.n_lost) == (None, (), 0)
    assert spans(trace.of(EventKind.TOKEN)) == [(1000, 76_000), (101_000, 176_000)]
    assert trace.of(EventKind.TOKEN)["value"].tolist() == [1, 1]
    graphs = trace.of(EventKind.GRAPH)
    assert spans(graphs) == [(2000, 71_000), (102_000, 171_000)]
    assert graphs["iteration"].tolist() == graphs["evaluation"].tolist() == [0, 1]
    assert graphs["graph"].tolist() == [0, 0]
    for thread in (0, 1):
        own = of_thread(trace, thread)
        assert own["evaluation"].tolist() == own["iteration"].tolist() == [0, 0, 0, 1, 1, 1]
        assert (own["node"].tolist(), own["cpu"].tolist()) == ([0, 1, 2, 0, 1, 2], [thread] * 6)


def test_an_operator_ends_at_its_last_barrier(traced: Traced) -> None:
    """The last barrier before the next operator is its end; without one it is the next begin, flagged so."""
    log = small_log(1)
    log.add(BpfKind.BARRIER, 6000 + OPERATOR_NS + 3000, tid=MAIN_TID)
    trace = traced(ended(log))
    assert spans(of_thread(trace, 0)) == [(6000, 16_000), (26_000, 36_000), (46_000, 56_000)]
    assert not (trace.of(EventKind.OPERATOR)["flags"] & EventFlag.END_DERIVED).any()
    assert spans(of_thread(trace, 1))[2] == (46_000, 58_000)
    trace = traced(ended(without_ends(2)))
    assert spans(of_thread(trace, 1))[:3] == [(6000, 26_000), (26_000, 46_000), (46_000, 71_000)]
    assert (trace.of(EventKind.OPERATOR)["flags"] & EventFlag.END_DERIVED).all()


def without_ends(n_tokens: int = 1) -> BpfLogBuilder:
    log = small_log(n_tokens)
    barrier = BpfKind.BARRIER.to_bytes(2, "little")
    log.parts = [part for part in log.parts if part[:2] != barrier]
    return log


def test_another_shape_is_another_graph(traced: Traced) -> None:
    """From its evaluation on, on all threads; what computes nothing is left out, and is no problem."""
    wider = replace(small_nodes()[2], ne=(64, 7, 1, 1))
    log = small_log(2)
    log.structure(TOKEN_NS + 1000 + 5000 + OPERATOR_NS - 1, wider)
    trace = traced(ended(log))
    assert [graph[1].tensor.ne for graph in trace.graphs] == [(64, 1, 1, 1), (64, 7, 1, 1)]
    assert trace.of(EventKind.GRAPH)["graph"].tolist() == [0, 1]
    assert (of_thread(trace, 1)["graph"].tolist(), trace.graphs[0][0]) == ([0, 0, 0, 1, 1, 1], trace.graphs[1][0])
    log = small_log(1)
    log.structure(1000 + 5000 + OPERATOR_NS - 1, replace(small_nodes()[2], ne=(64, 0, 1, 1)))
    trace = traced(ended(log))
    assert [node.tensor.name for node in trace.graphs[0]] == ["attn_norm-0", "l_out-0"]
    assert of_thread(trace, 0)["node"].tolist() == of_thread(trace, 1)["node"].tolist() == [0, 1]
    assert trace.problems == ()


def test_counters_are_differences_between_begin_and_end(traced: Traced) -> None:
    trace = traced(ended(small_log(2, counter_names=("cycles", "page-faults"))))
    assert trace.counter_names == ("cycles", "page-faults")
    operators = trace.of(EventKind.OPERATOR)
    assert (operators["counters"].tolist(), trace.counters.tolist()) == (list(range(12)), [[100, 100]] * 12)
    log = small_log(0, counter_names=("cycles",))
    norm = small_nodes()[0]
    log.graph(0, 50_000)
    log.operator(1000, 2000, norm, counted=([500], [400]))
    log.operator(3000, 4000, norm, counted=([500], [650]))
    trace = traced(ended(log))
    assert (trace.of(EventKind.OPERATOR)["counters"].tolist(), trace.counters.tolist()) == ([NOTHING, 0], [[150]])


def test_attaching_in_the_middle_of_a_graph_is_flagged(traced: Traced) -> None:
    """The token and the graph under way are CUT, and their operators are nodes of the whole graph that follows."""
    log = small_log(2)
    at_ns = 1000 + 5000 + OPERATOR_NS - 500
    kept = small_log(0)
    kept.parts += [part for part in log.parts if after(part, at_ns) or part[:2] == bytes([BpfKind.THREAD_NAME, 0])]
    for node in small_nodes()[:2]:
        kept.structure(TOKEN_NS + 1000 + 4999, node)
    trace = traced(ended(kept))
    tokens, graphs = trace.of(EventKind.TOKEN), trace.of(EventKind.GRAPH)
    assert (spans(tokens)[0][1], spans(graphs)[0][1]) == (76_000, 71_000)
    assert tokens["start_ns"][0] == graphs["start_ns"][0] == EPOCH_NS
    assert tokens["flags"].tolist() == graphs["flags"].tolist() == [EventFlag.CUT, 0]
    assert len(trace.graphs) == 1
    assert of_thread(trace, 0)["node"].tolist() == of_thread(trace, 1)["node"].tolist() == [1, 2, 0, 1, 2]


def after(part: bytes, ns: int) -> bool:
    return int.from_bytes(part[8:16], "little") - EPOCH_NS >= ns


def test_a_cut_log_leaves_its_last_graph_open(traced: Traced) -> None:
    log = small_log(2)
    log.parts = [part for part in log.parts if not after(part, TOKEN_NS + 1000 + 5000 + OPERATOR_NS + 1)]
    trace = traced(log)
    assert trace.cut is not None
    assert trace.cut.startswith("ebpf.bpflog: no end record after byte")
    assert spans(trace.of(EventKind.GRAPH)) == [(2000, 71_000), (102_000, NOTHING)]
    assert trace.of(EventKind.GRAPH)["flags"].tolist() == [0, EventFlag.CUT]
    last = of_thread(trace, 0)[-1]
    assert last["end_ns"] == NOTHING
    assert last["flags"] & EventFlag.CUT
    assert (last["graph"], last["node"]) == (0, 1)


def test_switching_levels_off_leaves_no_false_ends(traced: Traced) -> None:
    log = small_log(2)
    off_ns, on_ns = 1000 + 5000 + OPERATOR_NS + 5000, TOKEN_NS
    log.parts = [part for part in log.parts if not after(part, off_ns) or after(part, on_ns)]
    log.add(BpfKind.LEVELS, off_ns, subject=int(TraceLevel.TOKEN), flags=2, value=4900)
    log.add(BpfKind.LEVELS, on_ns, subject=0xFF, flags=3, value=8000)
    trace = traced(ended(log))
    levels = trace.of(EventKind.LEVELS)
    assert (spans(levels), levels["value"].tolist()) == ([(off_ns, off_ns), (on_ns, on_ns)], [TraceLevel.TOKEN, 0xFF])
    assert levels["flags"].tolist() == [EventFlag.BELOW_FLOOR, EventFlag.RECOVERED]
    assert spans(of_thread(trace, 0))[:2] == [(6000, 16_000), (26_000, NOTHING)]
    assert of_thread(trace, 0)["flags"][1] & EventFlag.CUT
    assert len(trace.graphs) == 1
    log = small_log(3)
    log.add(BpfKind.LEVELS, TOKEN_NS, subject=int(TraceLevel.TOKEN | TraceLevel.GRAPH), flags=1)
    log.add(BpfKind.LEVELS, 2 * TOKEN_NS, subject=0xFF & ~int(TraceLevel.ENDS), flags=1)
    trace = traced(ended(log))
    assert of_thread(trace, 0)["evaluation"].tolist() == [0, 0, 0, 2, 2, 2]
    assert trace.of(EventKind.GRAPH)["graph"].tolist() == [0, NOTHING, 0]
    derived = (of_thread(trace, 0)["flags"] & EventFlag.END_DERIVED) != 0
    assert derived.tolist() == [False] * 3 + [True] * 3
    assert not (trace.of(EventKind.OPERATOR)["flags"] & EventFlag.CUT).any()
    assert trace.problems == ()


def test_lost_events_are_counted_and_placed(traced: Traced) -> None:
    log = small_log(3)
    lost_begin = [part for part in log.parts if part[:2] == bytes([BpfKind.OPERATOR_BEGIN, 0])][6 + 2]
    log.parts.remove(lost_begin)
    log.add(BpfKind.LOST, TOKEN_NS - 1000, subject=0)
    log.add(BpfKind.LOST, 2 * TOKEN_NS - 1000, subject=1)
    trace = traced(ended(log, n_lost=1))
    assert trace.n_lost == 1
    assert trace.problems == (
        "1 events found no room: operators may be missing in evaluations 0 to 1, and those before them look longer "
        "than they were",
    )
    assert (len(trace.graphs), of_thread(trace, 0)["node"].tolist()) == (1, [0, 1, 2, 0, 2, 0, 1, 2])
    assert of_thread(trace, 1)["node"].tolist() == [0, 1, 2] * 3


def test_another_build_of_ggml_is_refused(tmp_path: Path, traced: Traced) -> None:
    log = read_bpf_log(ended(small_log(1)).write(tmp_path / "log"))
    with pytest.raises(MeasurementError, match=r"tensors of 336 bytes; ggml 1 \(build 00ff\) has 344"):
        ebpf_trace(log, replace(tensor_layout(), tensor_bytes=344))
    trace = traced(ended(BpfLogBuilder()))
    assert (trace.events.size, trace.graphs, trace.threads, trace.cut) == (0, (), (), None)


def intervals(tmp_path: Path, *records: tuple[BpfKind, int, int]) -> Intervals:
    log = BpfLogBuilder()
    for kind, ns, tid in records:
        log.add(kind, ns, tid=tid)
    return intervals_of(read_bpf_log(log.write(tmp_path / "log")), BpfKind.TOKEN_BEGIN, BpfKind.TOKEN_END)


def pairs_of(found: Intervals) -> list[tuple[int, int]]:
    ends = np.where(found.end_ns == NOTHING, NOTHING, found.end_ns - EPOCH_NS)
    return list(zip((found.start_ns - EPOCH_NS).tolist(), ends.tolist(), strict=True))


BEGIN, END = BpfKind.TOKEN_BEGIN, BpfKind.TOKEN_END


def test_each_end_belongs_to_the_begin_before_it(tmp_path: Path) -> None:
    found = intervals(
        tmp_path, (BEGIN, 10, 1), (BEGIN, 15, 2), (END, 30, 2), (END, 20, 1), (BEGIN, 40, 1), (END, 50, 1)
    )
    assert (pairs_of(found), found.tid.tolist()) == ([(10, 20), (15, 30), (40, 50)], [1, 2, 1])
    assert found.flags.tolist() == [0, 0, 0]
    assert found.overlaps


def test_what_was_not_seen_of_a_call_is_derived(tmp_path: Path) -> None:
    """A first end without a begin is of a call under way; a missing end is the thread's next begin at most."""
    found = intervals(tmp_path, (END, 20, 1), (BEGIN, 30, 1), (END, 40, 1), (END, 60, 1))
    assert (pairs_of(found), found.flags.tolist()) == ([(0, 20), (30, 40)], [EventFlag.CUT, 0])
    assert not found.overlaps
    found = intervals(tmp_path, (BEGIN, 10, 1), (BEGIN, 30, 1), (END, 40, 1), (BEGIN, 50, 1))
    assert pairs_of(found) == [(10, NOTHING), (30, 40), (50, NOTHING)]
    assert found.flags.tolist() == [EventFlag.CUT, 0, EventFlag.CUT]
    assert found.containing(EPOCH_NS + np.array([5, 20, 35, 45, 99])).tolist() == [NOTHING, 0, 1, NOTHING, 2]


def test_moments_may_ask_for_their_own_thread(tmp_path: Path) -> None:
    """Of calls that overlap a thread's own may be another; without records nothing contains anything."""
    found = intervals(tmp_path, (BEGIN, 10, 1), (BEGIN, 15, 2), (END, 30, 2), (END, 40, 1))
    moment = EPOCH_NS + np.array([20, 20, 20])
    assert found.containing(moment).tolist() == [1, 1, 1]
    assert found.containing(moment, np.array([1, 2, 3])).tolist() == [0, 1, NOTHING]
    found = intervals(tmp_path)
    assert (found.size, found.containing(np.array([EPOCH_NS])).tolist()) == (0, [NOTHING])
