"""What a timeline shows: tracks, and on them slices, instants and counters, all on the monotonic clock."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import Ints


def lanes(start_ns: Ints, end_ns: Ints) -> Ints:
    """Give each stretch of time the lowest lane that is free at its start, so that none overlaps another of its lane.

    Starts are in ascending order, and no end is before its start.
    """
    found = np.zeros(len(start_ns), dtype=np.int64)
    if len(start_ns) < 2 or bool((start_ns[1:] >= np.maximum.accumulate(end_ns)[:-1]).all()):
        return found
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    for position, (start, end) in enumerate(zip(start_ns.tolist(), end_ns.tolist(), strict=True)):
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (end, lane))
        found[position] = lane
    return found


#: The longest text that a timeline takes over from a trace.
MOST_CHARACTERS = 200

#: A stretch of time on a track; slices of one track do not overlap. `end_ns` is NOTHING for an instant.
SLICE_DTYPE = np.dtype(
    [
        ("start_ns", "<i8"),
        ("end_ns", "<i8"),
        #: Positions in `tracks` and `labels`.
        ("track", "<i4"),
        ("label", "<i4"),
        ("cpu", "<i4"),
        ("iteration", "<i4"),
        ("evaluation", "<i4"),
        #: Number of the arrow that passes here, from 1 on, and what it does here (`Arrow`); NOTHING and 0 for none.
        ("flow", "<i4"),
        ("arrow", "u1"),
    ]
)

#: A counter's value from `ns` on.
POINT_DTYPE = np.dtype([("ns", "<i8"), ("value", "<i8"), ("track", "<i4")])

#: One-dimensional arrays of `SLICE_DTYPE` and `POINT_DTYPE`.
Slices = npt.NDArray[np.void]
Points = npt.NDArray[np.void]


class Arrow(int, Enum):
    """What an arrow does at a slice."""

    BEGINS = 1
    PASSES = 2
    ENDS = 3


class TrackKind(str, Enum):
    """What a track is."""

    PROCESS = "process"
    THREAD = "thread"
    SLICES = "slices"
    COUNTER = "counter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One row of the timeline; those of one parent are shown in the order of the tracks."""

    name: str
    kind: TrackKind
    #: Position in `tracks`; None for the root.
    parent: int | None
    #: The thread's id as the system numbers it; None where it is not known, or the track is of no thread.
    tid: int | None = None
    #: What a counter counts; None where it is no counter.
    unit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What slices are called, and what else there is to say of them; both printable."""

    name: str
    category: str
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Everything that a timeline shows."""

    #: The first is the process.
    tracks: tuple[Track, ...]
    labels: tuple[Label, ...]
    #: `SLICE_DTYPE`; those of one track in the order of their starts.
    slices: Slices
    #: `POINT_DTYPE`; those of one track in the order of time.
    points: Points
    pid: int | None
    #: What is known of the recording, name by name.
    notes: tuple[tuple[str, str], ...]


def printable(text: str) -> str:
    """Return a text from a trace as it may be shown: no control characters, none that turn the line, not too long."""
    shown = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text[: MOST_CHARACTERS + 1])
    return shown if len(text) <= MOST_CHARACTERS else f"{shown[: MOST_CHARACTERS - 1]}…"
