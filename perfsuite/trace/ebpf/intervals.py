"""Calls that the eBPF recorder saw begin and end, and which of them a moment falls into."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.records.bpf_log_file import BpfKind, BpfLog, LevelsReason, Positions
from perfsuite.records.engine_trace import NOTHING, EventFlag, EventKind, Events, Ints, Times, new_events
from perfsuite.records.trace_levels import TraceLevel

_FLAGS = {LevelsReason.BELOW_FLOOR: EventFlag.BELOW_FLOOR, LevelsReason.RECOVERED: EventFlag.RECOVERED}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelChanges:
    """The levels over time."""

    #: From when on everything asked for is recorded, and what that is.
    start_ns: int
    first: int
    #: When they changed, and what they were from then on.
    ns: Times
    levels: npt.NDArray[np.int64]
    flags: npt.NDArray[np.uint8]

    @property
    def all(self) -> TraceLevel:
        return TraceLevel(int(np.bitwise_or.reduce(self.levels, initial=self.first)) & sum(TraceLevel))

    def switched(self, level: TraceLevel) -> Times:
        before = np.append(self.first, self.levels)[: self.levels.size]
        changes: Times = self.ns[((before ^ self.levels) & level) != 0]
        return changes

    def is_on(self, level: TraceLevel, ns: Times) -> npt.NDArray[np.bool_]:
        """Return for each moment whether a level was recorded throughout.

        Probes come and go one after the other: what they report when a level is stated to be off is not the whole.
        """
        levels = np.append(self.first, self.levels)[np.searchsorted(self.ns, ns, side="right")]
        found: npt.NDArray[np.bool_] = (ns >= self.start_ns) & ((levels & level) != 0)
        return found

    def is_switched_within(self, level: TraceLevel, start_ns: Times, end_ns: Times) -> npt.NDArray[np.bool_]:
        """Return for each stretch of time whether a level was switched within it."""
        changes = self.switched(level)
        found: npt.NDArray[np.bool_] = np.searchsorted(changes, end_ns) > np.searchsorted(changes, start_ns)
        return found

    def events(self) -> Events:
        fields = {"start_ns": self.ns, "end_ns": self.ns, "value": self.levels, "flags": self.flags}
        return new_events(EventKind.LEVELS, self.ns.size, **fields)


def level_changes(log: BpfLog) -> LevelChanges:
    """Find when a log's levels were switched."""
    records = log.records[log.positions(BpfKind.LEVELS)]
    records = records[np.argsort(records["ns"], kind="stable")]
    reasons = records["flags"].tolist()
    return LevelChanges(
        start_ns=log.start_ns,
        first=log.levels,
        ns=records["ns"].astype(np.int64),
        levels=(records["subject"] & np.uint64(sum(TraceLevel))).astype(np.int64),
        flags=np.array([_FLAGS.get(reason, 0) for reason in reasons], np.uint8),
    )


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


def n_lost_of(log: BpfLog) -> int:
    """Return how many events found no room."""
    ends = log.positions(BpfKind.END)
    return max(_n_reported(log), int(log.records["subject"][ends[-1]])) if ends.size else _n_reported(log)


def doubtful_evaluations(log: BpfLog, evaluations: Intervals, levels: LevelChanges) -> npt.NDArray[np.bool_]:
    """Mark the evaluations some of whose operators may be missing.

    The recorder came or went in the middle of them, was asked to record something else, or lost events at that time.
    """
    last_ns = evaluations.last_ns
    doubtful: npt.NDArray[np.bool_] = (evaluations.flags & EventFlag.CUT) != 0
    doubtful |= levels.is_switched_within(TraceLevel.OPERATOR, evaluations.start_ns, last_ns)
    for first_ns, until_ns in _losses(log):
        doubtful |= (evaluations.start_ns <= until_ns) & (last_ns >= first_ns)
    return doubtful


def affected(doubtful: npt.NDArray[np.bool_]) -> str:
    """Say what lost events make doubtful."""
    found = np.flatnonzero(doubtful)
    if not found.size:
        return "none of them within a graph"
    which = f"evaluations {found[0]} to {found[-1]}" if found.size > 1 else f"evaluation {found[0]}"
    return f"operators may be missing in {which}, and those before them look longer than they were"


def last_ns_of(log: BpfLog) -> int:
    """Return the time of the last record."""
    return int(log.records["ns"].max(initial=log.start_ns))


def _n_reported(log: BpfLog) -> int:
    return int(log.records["subject"][log.positions(BpfKind.LOST)].sum())


def _losses(log: BpfLog) -> list[tuple[int, int]]:
    records = log.records[log.positions(BpfKind.LOST)]
    until_ns = sorted(records["ns"][records["subject"] > 0].tolist())
    losses = list(zip([log.start_ns, *until_ns[:-1]], until_ns, strict=True)) if until_ns else []
    if n_lost_of(log) > _n_reported(log):
        losses.append((until_ns[-1] if until_ns else log.start_ns, last_ns_of(log)))
    return losses
