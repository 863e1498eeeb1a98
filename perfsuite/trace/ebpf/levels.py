"""When the eBPF recorder recorded what: its levels may be switched while it runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.records.bpf_log import BpfKind, BpfLog, LevelsReason
from perfsuite.records.engine_trace import EventFlag, EventKind, Events, Times, new_events
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
        """Everything that was recorded at any time."""
        return TraceLevel(int(np.bitwise_or.reduce(self.levels, initial=self.first)) & sum(TraceLevel))

    def switched(self, level: TraceLevel) -> Times:
        """Return when a level was switched off or on."""
        before = np.append(self.first, self.levels)[: self.levels.size]
        changes: Times = self.ns[((before ^ self.levels) & level) != 0]
        return changes

    def is_on(self, level: TraceLevel, ns: Times) -> npt.NDArray[np.bool_]:
        """Tell of each moment whether a level was recorded throughout.

        Probes come and go one after the other: what they tell when a level is said to be off is not the whole.
        """
        levels = np.append(self.first, self.levels)[np.searchsorted(self.ns, ns, side="right")]
        found: npt.NDArray[np.bool_] = (ns >= self.start_ns) & ((levels & level) != 0)
        return found

    def is_switched_within(self, level: TraceLevel, start_ns: Times, end_ns: Times) -> npt.NDArray[np.bool_]:
        """Tell of each stretch of time whether a level was switched within it."""
        changes = self.switched(level)
        found: npt.NDArray[np.bool_] = np.searchsorted(changes, end_ns) > np.searchsorted(changes, start_ns)
        return found

    def events(self) -> Events:
        """Return one event for each time that they were switched."""
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
