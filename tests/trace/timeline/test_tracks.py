"""Texts of a timeline."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.records.engine_trace import EventKind, ThreadState, TracedThread
from perfsuite.records.trace_levels import TraceLevel
from perfsuite.testing.engine_traces import engine_trace, event, node, tensor
from perfsuite.trace.timeline.tracks import (
    MOST_CHARACTERS,
    Labelled,
    label_events,
    label_operators,
    lanes,
    printable,
    shape_text,
    thread_text,
)


def names(labelled: Labelled) -> list[str]:
    return [labelled.labels[each].name for each in labelled.of_event.tolist()]


def test_operators_are_called_by_operation_and_tensor() -> None:
    trace = engine_trace([event(EventKind.OPERATOR, at, at + 1, graph=0, node=at) for at in (0, 1)])
    labelled = label_operators(trace)
    assert names(labelled) == ["RMS_NORM+MUL attn_norm-0", "MUL_MAT Qcur-0"]
    assert labelled.labels[1].about == "f32 64 from f32 64x64, f32 64"
    places = [(0, 99), (9, 0), (-1, -1), (0, -1)]
    trace = engine_trace([event(EventKind.OPERATOR, at, at + 1, graph=g, node=n) for at, (g, n) in enumerate(places)])
    assert names(label_operators(trace)) == ["operator"] * 4


def test_states_have_their_processor_in_the_name() -> None:
    states = [(ThreadState.RUNNING, 1), (ThreadState.RUNNABLE, 0), (ThreadState.IDLE, 3), (9, -1)]
    trace = engine_trace(
        [event(EventKind.THREAD_STATE, at, at + 1, value=s, cpu=cpu) for at, (s, cpu) in enumerate(states)]
    )
    assert names(label_events(trace, EventKind.THREAD_STATE)) == [
        "running on CPU 1",
        "runnable for CPU 0",
        "idle",
        "unknown",
    ]


def test_events_are_called_by_what_they_are() -> None:
    trace = engine_trace([event(EventKind.TOKEN, at, at + 1, value=n) for at, n in enumerate((512, 1, -1))])
    assert names(label_events(trace, EventKind.TOKEN)) == ["512 tokens", "1 token", "batch"]
    trace = engine_trace(
        [event(kind, at, at + 1, value=at) for kind in (EventKind.PHASE, EventKind.KERNEL) for at in (0, 1)],
        phases=("decode",),
        kernels=("mul_mv",),
    )
    assert names(label_events(trace, EventKind.PHASE)) == ["decode", "phase"]
    assert names(label_events(trace, EventKind.KERNEL)) == ["mul_mv", "kernel"]
    trace = engine_trace(
        [
            event(EventKind.LEVELS, at, at, value=v)
            for at, v in enumerate((int(TraceLevel.TOKEN | TraceLevel.OPERATOR), 0))
        ]
    )
    assert names(label_events(trace, EventKind.LEVELS)) == ["levels: token, operator", "levels: none"]
    trace = engine_trace([event(EventKind.GRAPH, at, at + 1, graph=g, value=0) for at, g in enumerate((0, -1))])
    assert names(label_events(trace, EventKind.GRAPH)) == ["graph 0", "graph"]


def test_names_of_a_trace_are_made_printable() -> None:
    evil = node("MUL_MAT", tensor("a\x1b]0;b\x07"))
    trace = engine_trace(
        [event(EventKind.OPERATOR, 0, 1, graph=0, node=0), event(EventKind.KERNEL, 0, 1, value=0)],
        graphs=((evil,),),
        kernels=("k\n",),
    )
    assert names(label_operators(trace)) == ["MUL_MAT a�]0;b�"]
    assert names(label_events(trace, EventKind.KERNEL)) == ["k�"]


@pytest.mark.parametrize(
    ("name", "tid", "expected"),
    [("llama-cli", 4711, "llama-cli 4711"), ("", 0, "thread 0"), ("thread 1", 1, "thread 1"), ("a\x1b", 5, "a� 5")],
)
def test_a_thread_is_called_by_name_and_number(name: str, tid: int, expected: str) -> None:
    assert thread_text(TracedThread(tid=tid, name=name)) == expected


def test_a_shape_leaves_out_ones_at_its_end() -> None:
    assert (shape_text((576, 1, 3, 1)), shape_text((1, 1, 1, 1))) == ("576x1x3", "1")


@pytest.mark.parametrize(
    ("starts", "ends", "expected"),
    [
        ([], [], []),
        ([5], [9], [0]),
        ([0, 10, 10], [10, 10, 20], [0, 0, 0]),
        ([0, 1, 2, 10], [10, 2, 4, 12], [0, 1, 1, 0]),
        ([0, 1, 2], [10, 10, 10], [0, 1, 2]),
    ],
)
def test_the_lowest_free_lane_is_taken(starts: list[int], ends: list[int], expected: list[int]) -> None:
    assert lanes(np.asarray(starts, dtype=np.int64), np.asarray(ends, dtype=np.int64)).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), max_size=30))
def test_nothing_overlaps_on_a_lane(spans: list[tuple[int, int]]) -> None:
    starts = np.asarray(sorted(start for start, _ in spans), dtype=np.int64)
    ends = starts + np.asarray([length for _, length in spans], dtype=np.int64)
    found = lanes(starts, ends)
    for lane in range(int(found.max(initial=-1)) + 1):
        own = found == lane
        assert (starts[own][1:] >= ends[own][:-1]).all()
    most = max((int(((starts <= at) & (ends > at)).sum()) for at in starts), default=0)
    assert len(set(found.tolist())) == max(most, bool(spans))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ffn_up-3", "ffn_up-3"),
        ("a\x1b[31mb", "a�[31mb"),
        ("a\nb\tc\0d", "a�b�c�d"),
        ("\u202efdp.exe", "�fdp.exe"),
        ("\ud800", "�"),
        ("µ 漢", "µ 漢"),
    ],
)
def test_what_controls_a_terminal_is_replaced(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_long_text_is_cut() -> None:
    assert printable("x" * MOST_CHARACTERS) == "x" * MOST_CHARACTERS
    assert printable("x" * 9999) == "x" * (MOST_CHARACTERS - 1) + "…"
