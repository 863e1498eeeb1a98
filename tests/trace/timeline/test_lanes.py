"""Lanes of what happens at the same time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.trace.timeline.lanes import lanes


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
