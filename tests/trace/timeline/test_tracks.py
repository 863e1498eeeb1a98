"""Texts of a timeline."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.trace.timeline.tracks import MOST_CHARACTERS, lanes, printable


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
    """What follows stays on the lane; what overlaps goes to the next one that is free."""
    assert lanes(np.asarray(starts, dtype=np.int64), np.asarray(ends, dtype=np.int64)).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), max_size=30))
def test_nothing_overlaps_on_a_lane(spans: list[tuple[int, int]]) -> None:
    """On each lane one stretch ends before the next begins, and there are as many lanes as overlap at most."""
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
    """Control characters, those that turn the line, and halves of characters do not get through; letters do."""
    assert printable(text) == shown


def test_a_long_text_is_cut() -> None:
    """A text is as long as is allowed, or shorter; the cut is marked."""
    assert printable("x" * MOST_CHARACTERS) == "x" * MOST_CHARACTERS
    assert printable("x" * 9999) == "x" * (MOST_CHARACTERS - 1) + "…"
