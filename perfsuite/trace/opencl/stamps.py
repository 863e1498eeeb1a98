"""Judges each of a command's four times by itself: what cannot be right is missing for what needs it, and no more.

    queueing  needs QUEUED and SUBMIT
    dispatch  needs SUBMIT and START
    execution needs START and END

A single time is wrong where the driver gave none, or 0. Of two in the wrong order, one is:

- SUBMIT before QUEUED: QUEUED where it is also after START, or outside of its enqueue call; else SUBMIT. It is left to
  `device_clock.align`, which knows the calls.
- START before SUBMIT: SUBMIT, which drivers take elsewhere than the two times of the device; but START where it is also
  before the END of the kernel before it on the same in-order queue. A driver of which that is seen again and again is
  not believed any START before SUBMIT.
- END before START: the one that contradicts a neighbour on the in-order queue, or END where it is before SUBMIT as
  well; both, where nothing tells them apart.

On an in-order queue a kernel does not begin before the one before it has ended. Where one does all the same, the time
that is out of the order of its own kind is wrong, or both.

*Source*: OpenCL 3.0, sections 3.2.1 (in-order execution) and 5.14 (``CL_PROFILING_COMMAND_*``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import Times
from perfsuite.records.opencl_commands import CommandFlag, Commands, CommandType, TracedQueue
from perfsuite.trace.opencl.clock_tick import LEAST_TICKS_STAMPED

#: The four times of a command, in the order in which they pass.
STAMPS = ("queued_ns", "submit_ns", "start_ns", "end_ns")

#: A later time that is smaller by more than this has wrapped: the smallest counters have 32 bits of 1 ns or more.
_WRAP_NS = 1 << 31

#: From so many on, and so large a share of those that are before SUBMIT, a START before its neighbour's END is the
#: driver's way.
_LEAST_EARLY = 3
_EARLY_SHARE = 0.01

#: `Anomaly` or `Stamp` flags of commands.
Flags = npt.NDArray[np.uint16]
_Mask = npt.NDArray[np.bool_]


class Stamp(IntFlag):
    """The times of a command, in the order of `STAMPS`."""

    QUEUED = 1
    SUBMIT = 2
    START = 4
    END = 8


#: What each duration needs.
QUEUEING = Stamp.QUEUED | Stamp.SUBMIT
DISPATCH = Stamp.SUBMIT | Stamp.START
EXECUTION = Stamp.START | Stamp.END

_ALL = Stamp.QUEUED | Stamp.SUBMIT | Stamp.START | Stamp.END


class Anomaly(IntFlag):
    """What is odd about a command's times."""

    #: The driver gave no time, or gave 0.
    ZERO_TIME = 1
    SUBMIT_BEFORE_QUEUED = 2
    START_BEFORE_SUBMIT = 4
    END_BEFORE_START = 8
    #: QUEUED is outside of the enqueue call by more than the clock's error.
    OUTSIDE_CALL = 16
    #: The device's counter wrapped while the command was on its way.
    WRAPPED = 32
    #: The command ended with an error.
    FAILED = 64
    #: It began before the kernel in front of it on its in-order queue had ended.
    OVERLAPS = 128
    #: It ended when it began, where others of the kernel took several ticks of the clock.
    NO_LENGTH = 256
    #: It began before its enqueue call by more than the clock's error.
    START_BEFORE_CALL = 512


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JudgedStamps:
    """What is odd about commands, and which of their times are missing for it."""

    #: `Anomaly` flags.
    anomalies: Flags
    #: `Stamp` flags of the times that are not known or cannot be right.
    missing: Flags


def judge_stamps(commands: Commands, queues: Sequence[TracedQueue] = (), *, tick_ns: int = 1) -> JudgedStamps:
    """Judge times by each other, whatever the host's clock says; commands are in the order of their enqueue calls."""
    judge = _Judge(commands, tick_ns)
    judge.look_at_order()
    judge.look_at_neighbours({each.queue for each in queues if not each.is_out_of_order})
    judge.blame()
    judge.look_at_lengths()
    judge.leave_failed_out()
    return JudgedStamps(anomalies=judge.anomalies, missing=judge.missing)


class _Judge:
    def __init__(self, commands: Commands, tick_ns: int) -> None:
        self._commands, self._tick_ns = commands, tick_ns
        self._times = np.stack([commands[name] for name in STAMPS])
        has_none = (commands["flags"] & CommandFlag.NO_PROFILE) != 0
        self._is_there = (self._times != 0) & ~has_none
        self.anomalies: Flags = np.zeros(commands.size, dtype=np.uint16)
        self.missing: Flags = np.zeros(commands.size, dtype=np.uint16)
        for stamp, is_there in zip(Stamp, self._is_there, strict=True):
            self._miss(~is_there, stamp)
        self._flag(~self._is_there.all(axis=0), Anomaly.ZERO_TIME)

    def look_at_order(self) -> None:
        """Find times that are before the ones that they follow."""
        is_wrapped = np.zeros(self._commands.size, dtype=bool)
        for earlier, later in pairwise(range(4)):
            is_wrapped |= self._both(earlier, later) & (self._times[earlier] - self._times[later] > _WRAP_NS)
        self._is_wrapped = is_wrapped
        self._flag(is_wrapped, Anomaly.WRAPPED)
        found = (Anomaly.SUBMIT_BEFORE_QUEUED, Anomaly.START_BEFORE_SUBMIT, Anomaly.END_BEFORE_START)
        for (earlier, later), anomaly in zip(pairwise(range(4)), found, strict=True):
            self._flag(self._is_before(later, earlier), anomaly)

    def look_at_neighbours(self, in_order: set[int]) -> None:
        """Find what contradicts the kernel before or after it on an in-order queue."""
        size = self._commands.size
        self._start_early, self._start_late = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
        self._end_early, self._end_late = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
        before, after = self._neighbours(in_order)
        start_ns, end_ns = self._times[2:]
        has_start, has_end = self._is_there[2], self._is_there[3]
        overlaps = has_end[before] & has_start[after] & (start_ns[after] < end_ns[before] - self._tick_ns)
        self._flag_at(after[overlaps & self._is_ordered(before) & self._is_ordered(after)], Anomaly.OVERLAPS)
        starts_turn = has_start[before] & has_start[after] & (start_ns[after] < start_ns[before])
        ends_turn = has_end[before] & has_end[after] & (end_ns[after] < end_ns[before])
        self._start_early[after[overlaps]] = True
        self._start_late[before[starts_turn]] = True
        self._end_early[after[ends_turn]] = True
        self._end_late[before[overlaps & ends_turn & ~starts_turn]] = True
        # Where neither kind is out of order, nothing tells which of the two times is wrong.
        is_open = overlaps & ~starts_turn & ~ends_turn & ~self._has(Anomaly.START_BEFORE_SUBMIT)[after]
        self._miss_at(before[is_open], Stamp.END)
        self._start_early[after[overlaps & ends_turn & ~starts_turn]] = False

    def blame(self) -> None:
        """Choose which of two times in the wrong order is missing."""
        queued_ns, submit_ns, start_ns, end_ns = self._times
        submit_first = self._has(Anomaly.SUBMIT_BEFORE_QUEUED)
        self._miss(submit_first & self._is_there[2] & (queued_ns > start_ns), Stamp.QUEUED)
        start_first = self._has(Anomaly.START_BEFORE_SUBMIT)
        self._miss(start_first & self._start_early, Stamp.START)
        n_early, n_turned = int((start_first & self._start_early).sum()), int(start_first.sum())
        if n_early >= max(_LEAST_EARLY, _EARLY_SHARE * n_turned):
            self._miss(start_first, Stamp.START)  # nor is START to be believed where no neighbour tells
        end_first = self._has(Anomaly.END_BEFORE_START)
        is_end = end_first & (self._end_early | (self._is_there[1] & (end_ns < submit_ns) & ~start_first))
        is_start = end_first & self._start_late
        self._miss(end_first & (is_end | ~is_start), Stamp.END)
        self._miss(end_first & (is_start | ~is_end), Stamp.START)
        self._miss(~end_first & self._start_early, Stamp.START)
        self._miss(~end_first & self._end_late, Stamp.END)
        is_submit = start_first & ~self._start_early & (self.missing & Stamp.START == 0)
        self._miss(is_submit, Stamp.SUBMIT)

    def look_at_lengths(self) -> None:
        """Find kernels that ended when they began, where others of the same name took several ticks."""
        is_kernel = self._commands["type"] == CommandType.KERNEL
        is_whole = is_kernel & (self.missing & EXECUTION == 0)
        length_ns = self._times[3] - self._times[2]
        for name in np.unique(self._commands["name"][is_whole & (length_ns == 0)]):
            own = is_whole & (self._commands["name"] == name)
            longer_ns = length_ns[own & (length_ns > 0)]
            if longer_ns.size and np.median(longer_ns) >= LEAST_TICKS_STAMPED * self._tick_ns:
                self._flag(own & (length_ns == 0), Anomaly.NO_LENGTH)
        self._miss(self._has(Anomaly.NO_LENGTH), EXECUTION)

    def leave_failed_out(self) -> None:
        """Take all times from commands that ended with an error."""
        is_failed = self._commands["status"] < 0
        self._flag(is_failed, Anomaly.FAILED)
        self._miss(is_failed, _ALL)

    def _neighbours(self, in_order: set[int]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return pairs of kernels that one thread enqueued one after the other to an in-order queue."""
        commands = self._commands
        befores, afters = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
        for queue in sorted(in_order):
            here = np.flatnonzero((commands["queue"] == queue) & (commands["type"] == CommandType.KERNEL))
            is_next = commands["thread"][here[1:]] == commands["thread"][here[:-1]]
            is_next &= ~self._is_wrapped[here[1:]] & ~self._is_wrapped[here[:-1]]
            is_next &= np.abs(np.diff(self._times[3][here])) < _WRAP_NS
            befores.append(here[:-1][is_next])
            afters.append(here[1:][is_next])
        return np.concatenate(befores), np.concatenate(afters)

    def _is_ordered(self, index: npt.NDArray[np.intp]) -> _Mask:
        """Return which have not their own END before START: then that says it all."""
        ordered: _Mask = ~self._has(Anomaly.END_BEFORE_START)[index]
        return ordered

    def _both(self, one: int, other: int) -> _Mask:
        there: _Mask = self._is_there[one] & self._is_there[other]
        return there

    def _is_before(self, later: int, earlier: int) -> _Mask:
        before: _Mask = self._times[later] < self._times[earlier]
        return before & self._both(earlier, later) & ~self._is_wrapped

    def _has(self, anomaly: Anomaly) -> _Mask:
        has: _Mask = (self.anomalies & anomaly) != 0
        return has

    def _flag(self, holds: _Mask, anomaly: Anomaly) -> None:
        self.anomalies[holds] |= np.uint16(anomaly)

    def _flag_at(self, index: npt.NDArray[np.intp], anomaly: Anomaly) -> None:
        self.anomalies[index] |= np.uint16(anomaly)

    def _miss(self, holds: _Mask, stamps: Stamp) -> None:
        self.missing[holds] |= np.uint16(stamps)

    def _miss_at(self, index: npt.NDArray[np.intp], stamps: Stamp) -> None:
        self.missing[index] |= np.uint16(stamps)


def duration_ns(commands: Commands, missing: Flags, needed: Stamp) -> tuple[Times, _Mask]:
    """Return the later less the earlier of two times, and of which commands it is known."""
    first, last = (STAMPS[stamp.bit_length() - 1] for stamp in Stamp if stamp in needed)
    length_ns: Times = commands[last] - commands[first]
    return length_ns, ((missing & needed) == 0) & (length_ns >= 0)
