"""Busy stretches and idle gaps of a device."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from perfsuite.records.opencl_commands import Commands, CommandType
from perfsuite.trace.opencl.device_clock import AlignedTrace, align
from perfsuite.trace.opencl.device_idle import IdleGap, device_activity

from ...synthetic_opencl import EPOCH_NS, command, queue, timer_point, trace

#: A clock that is the host's, read so closely that alignment moves nothing.
EXACT = tuple(timer_point(EPOCH_NS + at, int, before_ns=0, after_ns=0) for at in range(0, 1001, 50))


def executed(sequence: int, start: int, end: int, **fields: int) -> Commands:
    times = [EPOCH_NS + each for each in (start, start, start, end)]
    return command(sequence, EPOCH_NS + start - 1, times, call_ns=2, **fields)


def aligned(*commands: Commands, **fields: object) -> AlignedTrace:
    return align(trace(commands, clock_points=EXACT, **{"queues": [queue(is_out_of_order=True)], **fields}))  # type: ignore[arg-type]


def after_epoch(gap: IdleGap) -> tuple[int, int, int, int]:
    return gap.start_ns - EPOCH_NS, gap.end_ns - EPOCH_NS, gap.preceding, gap.following


def test_gaps_lie_between_the_unions_of_executions() -> None:
    """What overlaps or touches is one stretch; a gap names the command that ended last and the next."""
    activity = device_activity(
        aligned(
            executed(0, 10, 100),
            executed(1, 20, 50),
            executed(2, 100, 120),
            executed(3, 200, 250),
            executed(4, 300, 310),
        ),
        0,
    )
    assert activity.span == (EPOCH_NS + 10, EPOCH_NS + 310)
    assert [after_epoch(gap) for gap in activity.gaps()] == [(120, 200, 2, 3), (250, 300, 3, 4)]
    assert ([gap.duration_ns for gap in activity.gaps(n_longest=1)], activity.n_gaps) == ([80], 2)
    (gap,) = device_activity(aligned(executed(0, 10, 100), executed(1, 20, 50), executed(2, 150, 160)), 0).gaps()
    assert after_epoch(gap) == (100, 150, 0, 2)


def test_the_idle_share_of_a_window_counts_what_lies_within() -> None:
    activity = device_activity(aligned(executed(0, 100, 200), executed(1, 300, 400)), 0)
    windows = [(0, 500), (150, 350), (210, 290), (120, 130), (450, 500), (0, 50), (7, 7)]
    found = activity.idle([(EPOCH_NS + start, EPOCH_NS + end) for start, end in windows])
    assert [each.busy_ns for each in found] == [200, 100, 0, 10, 0, 0, 0]
    assert [each.idle_ratio for each in found] == [0.6, 0.5, 1.0, 0.0, 1.0, 1.0, None]


def test_markers_occupy_nothing_and_anomalies_are_counted() -> None:
    """A barrier that waits is not work; a command with an anomaly counts as idle, which its window shows."""
    found = aligned(
        executed(0, 100, 200), executed(1, 200, 900, type=CommandType.MARKER, name=0), executed(2, 600, 500)
    )
    activity = device_activity(found, 0)
    assert activity.span == (EPOCH_NS + 100, EPOCH_NS + 200)
    windows = activity.idle([(EPOCH_NS, EPOCH_NS + 400), (EPOCH_NS + 400, EPOCH_NS + 800)])
    assert [each.n_left_out for each in windows] == [0, 1]


@given(
    pieces=st.lists(st.tuples(st.integers(1, 300), st.integers(1, 60)), min_size=1, max_size=12),
    window=st.tuples(st.integers(0, 400), st.integers(0, 400)).map(sorted),
)
def test_busy_time_is_that_of_counting_each_nanosecond(pieces: list[tuple[int, int]], window: list[int]) -> None:
    """The union's length within any window is the number of nanoseconds that any execution covers."""
    commands = [executed(i, start, start + length) for i, (start, length) in enumerate(pieces)]
    covered = {at for start, length in pieces for at in range(start, start + length)}
    begin, end = window
    (found,) = device_activity(aligned(*commands), 0).idle([(EPOCH_NS + begin, EPOCH_NS + end)])
    assert found.busy_ns == len(covered & set(range(begin, end)))
