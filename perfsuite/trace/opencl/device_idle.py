"""When a device computes and when it is idle: the union of its commands' executions, and the gaps between them.

    busy(a, b)  = length of [a, b] within the union of [START, END] of the device's commands
    idle share  = 1 - busy(a, b) / (b - a)

All times are on the host's clock. Markers and barriers occupy no device. A command that was dropped is left out:
the idle share of a window that has some is no more than that, and a gap that one may have filled is no gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import Times
from perfsuite.records.opencl_commands import CommandType
from perfsuite.trace.opencl.device_clock import AlignedTrace

_Index = npt.NDArray[np.intp]

#: A begin and an end on the host's clock, ns.
Window = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleGap:
    """A stretch between two commands in which a device executed nothing."""

    start_ns: int
    end_ns: int
    #: Positions in ``trace.commands`` of the command that ended last before it, and of the one that began after it.
    preceding: int
    following: int

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleWindow:
    """How much of a window a device was idle."""

    start_ns: int
    end_ns: int
    busy_ns: int
    #: Commands enqueued within the window that were dropped, whose time counts as idle.
    n_left_out: int

    @property
    def idle_ratio(self) -> float | None:
        """Idle time over the window, at most that where commands are left out; `None` of a window without length."""
        length_ns = self.end_ns - self.start_ns
        return 1 - self.busy_ns / length_ns if length_ns else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeviceActivity:
    """One device's busy stretches, which neither touch nor overlap, in the order of time."""

    device: int
    start_ns: Times
    end_ns: Times
    #: Positions in ``trace.commands`` of the first command of each stretch, and of the one that ended last.
    first: _Index
    last: _Index
    #: When its commands that were dropped were enqueued, in the order of time.
    left_out_ns: Times
    #: Which gaps none of these may have filled.
    is_gap: npt.NDArray[np.bool_]

    @property
    def span(self) -> Window | None:
        """From the first START to the last END; `None` where nothing was executed."""
        return (int(self.start_ns[0]), int(self.end_ns[-1])) if self.start_ns.size else None

    @property
    def n_gaps(self) -> int:
        return int(self.is_gap.sum())

    def gaps(self, n_longest: int | None = None) -> tuple[IdleGap, ...]:
        """Return the gaps in the order of time, or the longest ones, the longest first."""
        starts_ns, ends_ns = self.end_ns[:-1], self.start_ns[1:]
        order = np.flatnonzero(self.is_gap)
        if n_longest is not None:
            order = order[np.argsort((starts_ns - ends_ns)[order], kind="stable")][:n_longest]
        names = ("start_ns", "end_ns", "preceding", "following")
        columns = (starts_ns, ends_ns, self.last[:-1], self.first[1:])
        rows = zip(*(each[order].tolist() for each in columns), strict=True)
        return tuple(IdleGap(**dict(zip(names, row, strict=True))) for row in rows)

    def idle(self, windows: Sequence[Window]) -> tuple[IdleWindow, ...]:
        """Return the idle share of each window, such as the steps of a generation in their order."""
        edges_ns = np.array(windows, dtype=np.int64).reshape(-1, 2)
        busy_ns = np.diff(self._busy_until(edges_ns), axis=1)[:, 0]
        n_left_out = np.diff(np.searchsorted(self.left_out_ns, edges_ns), axis=1)[:, 0]
        rows = np.column_stack([edges_ns, busy_ns, n_left_out]).tolist()
        return tuple(IdleWindow(start_ns=start, end_ns=end, busy_ns=busy, n_left_out=n) for start, end, busy, n in rows)

    def _busy_until(self, times_ns: Times) -> Times:
        before_ns = np.concatenate([[0], np.cumsum(self.end_ns - self.start_ns)])
        n_begun = np.searchsorted(self.start_ns, times_ns, side="right")
        ends_ns = np.concatenate([[np.iinfo(np.int64).min], self.end_ns])
        busy_ns: Times = before_ns[n_begun] - np.where(n_begun > 0, np.maximum(ends_ns[n_begun] - times_ns, 0), 0)
        return busy_ns


def device_activity(aligned: AlignedTrace, device: int) -> DeviceActivity:
    """Return when one of the trace's devices was busy."""
    commands = aligned.trace.commands
    here = (aligned.device == device) & (commands["type"] != CommandType.MARKER)
    is_left_out = here & ~aligned.is_kept
    found = np.flatnonzero(here & ~is_left_out)
    found = found[np.argsort(aligned.start_ns[found], kind="stable")]
    start_ns, end_ns = aligned.start_ns[found], aligned.end_ns[found]
    latest_ns = np.maximum.accumulate(end_ns)
    begins = np.flatnonzero(np.append(True, start_ns[1:] > latest_ns[:-1])[: found.size])
    ends = np.append(begins[1:], found.size)[: begins.size] - 1
    # The command that reached the latest END first, at or before each position.
    is_latest = np.append(True, end_ns[1:] > latest_ns[:-1])[: found.size]
    reached = np.maximum.accumulate(np.where(is_latest, np.arange(found.size), 0))
    first, last = found[begins], found[reached[ends]]
    # Between the positions of a gap's two commands, in whatever order, none may be left out.
    n_before = np.concatenate([[0], np.cumsum(is_left_out)])
    outer = np.sort(np.stack([last[:-1], first[1:]]), axis=0)
    return DeviceActivity(
        device=device,
        start_ns=start_ns[begins],
        end_ns=latest_ns[ends],
        first=first,
        last=last,
        left_out_ns=np.sort(commands["host_start_ns"][is_left_out]),
        is_gap=n_before[outer[1]] == n_before[outer[0]],
    )
