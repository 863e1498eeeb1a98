"""Texts of a timeline."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.records.engine_trace import EventKind
from perfsuite.testing.engine_traces import engine_trace, event, node, tensor
from perfsuite.trace.timeline.tracks import (
    Labelled,
    label_events,
    label_operators,
    lanes,
    printable,
)


def names(labelled: Labelled) -> list[str]:
    return [labelled.labels[each].name for each in labelled.of_event.tolist()]


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
