"""Calls that the eBPF recorder saw begin and end, and which of them a moment falls into."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.records.bpf_log import BpfKind, BpfLog, Positions
from perfsuite.records.engine_trace import NOTHING, EventFlag, Ints, Times

#: Later than any event.
NEVER_NS = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Intervals:
    """Calls of one function in the order of their begins; all arrays are parallel."""

    start_ns: Times
    #: NOTHING where the end was not seen.
    end_ns: Times
    tid: Ints
    #: Position of the record of the begin; NOTHING where it was not seen.
    begin: Ints
    #: Position of the record of the end; NOTHING where it was not seen.
    end: Ints

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.start_ns.size)

    @property
    def flags(self) -> npt.NDArray[np.uint8]:
        """CUT where the begin or the end was not seen."""
        is_cut = (self.begin == NOTHING) | (self.end == NOTHING)
        return np.where(is_cut, EventFlag.CUT, 0).astype(np.uint8)

    @property
    def last_ns(self) -> Times:
        """When each is over at the latest: its end, or where the same thread's next begins."""
        return np.where(self.end_ns == NOTHING, _next_on_thread(self), self.end_ns)

    @property
    def overlaps(self) -> bool:
        """Whether any begins before the one in front of it is over."""
        return bool((self.start_ns[1:] < self.last_ns[:-1]).any())

    def containing(self, ns: Times, tid: Ints | None = None) -> Ints:
        """Return the interval that each moment falls into, NOTHING where there is none; `tid` asks for its own only."""
        found = np.full(ns.size, NOTHING, np.int64)
        if tid is None:
            groups = [(np.arange(ns.size), np.arange(self.size))]
        else:
            callers = np.unique(self.tid)
            groups = [(np.flatnonzero(tid == each), np.flatnonzero(self.tid == each)) for each in callers]
        for moments, intervals in groups:
            if intervals.size:
                found[moments] = self._within(ns[moments], intervals)
        return found

    def _within(self, ns: Times, intervals: Positions) -> Ints:
        before = np.searchsorted(self.start_ns[intervals], ns, side="right") - 1
        chosen = intervals[np.maximum(before, 0)]
        is_inside = (before >= 0) & (ns <= self.last_ns[chosen])
        return np.where(is_inside, chosen, NOTHING)


def _next_on_thread(intervals: Intervals) -> Times:
    """Return when the same thread's next interval begins."""
    order = np.lexsort((intervals.start_ns, intervals.tid))
    following = np.full(intervals.size, NEVER_NS, np.int64)
    same = intervals.tid[order[1:]] == intervals.tid[order[:-1]]
    following[order[:-1][same]] = intervals.start_ns[order[1:][same]]
    return following


def intervals_of(log: BpfLog, begin: BpfKind, end: BpfKind) -> Intervals:
    """Pair begins with the ends that follow them on the same thread.

    An end without a begin is of a call that was under way when the recorder came, if it is its thread's first record,
    and is dropped where it is not: then the begin was lost.
    """
    positions = log.positions(begin, end)
    records = log.records[positions]
    order = np.lexsort((records["ns"], records["tid"]))
    positions, records = positions[order], records[order]
    is_begin, tid, ns = records["kind"] == begin, records["tid"].astype(np.int64), records["ns"]
    follows = np.append(tid[1:] == tid[:-1], False)
    is_first = np.append(True, tid[1:] != tid[:-1])[: tid.size]
    closes = follows & np.append(~is_begin[1:], False)
    kept = np.flatnonzero(is_begin | is_first)
    has_end = np.where(is_begin[kept], closes[kept], True)
    end_place = np.where(is_begin[kept], np.minimum(kept + 1, max(tid.size - 1, 0)), kept)
    starts_ns = np.where(is_begin[kept], ns[kept], np.minimum(log.start_ns, ns[kept]))
    by_start = np.argsort(starts_ns, kind="stable")
    return Intervals(
        start_ns=starts_ns[by_start],
        end_ns=np.where(has_end, ns[end_place], NOTHING)[by_start],
        tid=tid[kept][by_start],
        begin=np.where(is_begin[kept], positions[kept], NOTHING)[by_start],
        end=np.where(has_end, positions[end_place], NOTHING)[by_start],
    )
