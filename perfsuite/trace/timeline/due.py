"""When operators were due on their threads: from the first thread's entry to the thread's own return."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import EngineTrace, EventFlag, EventKind, Events, Ints
from perfsuite.trace.statistics.operator_runs import operator_events


@dataclass(frozen=True, slots=True, kw_only=True)
class DueParts:
    """Each operator on each thread, sorted by run (operator of an evaluation), with when it was due."""

    #: Position among the trace's events.
    at: Ints
    #: Number of the run.
    run: Ints
    thread: Ints
    due_ns: Ints
    end_ns: Ints
    is_derived: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Positions of a part and of a wait, and how long the one waited because of the other."""

    part: int
    wait: int
    delay_ns: int


def due_parts(trace: EngineTrace) -> DueParts:
    """Return all parts whose ends are known.

    Where an end is only where the thread's next operator begins, it is at the latest where the next run begins on any
    thread: by then the barrier was open.
    """
    at = operator_events(trace, EventKind.OPERATOR)
    events = trace.events[at]
    evaluation = events["evaluation"].astype(np.int64) * (len(trace.graphs) + 1) + events["graph"]
    key = (evaluation << 32) + events["node"]
    order = np.argsort(key, kind="stable")
    at, events, key = at[order], events[order], key[order]
    run = np.cumsum(np.diff(key, prepend=key[:1]) != 0)
    first = np.flatnonzero(np.diff(run, prepend=-1))
    if not len(first):
        return DueParts(at=at, run=run, thread=at, due_ns=at, end_ns=at, is_derived=at > 0)
    due_ns = np.minimum.reduceat(events["start_ns"], first)
    is_derived = events["flags"] & EventFlag.END_DERIVED != 0
    end_ns = np.where(is_derived, np.minimum(events["end_ns"], _next_due(due_ns)[run]), events["end_ns"])
    thread = events["thread"].astype(np.int64)
    return DueParts(at=at, run=run, thread=thread, due_ns=due_ns[run], end_ns=end_ns, is_derived=is_derived)


def _next_due(due_ns: Ints) -> Ints:
    """Return for each run when the next one begins; the end of time for the last."""
    order = np.argsort(due_ns, kind="stable")
    found = np.full(len(due_ns), np.iinfo(np.int64).max)
    found[order[:-1]] = due_ns[order[1:]]
    return found


def overlaps(parts: DueParts, waits: Events) -> Iterator[Overlap]:
    """Yield each wait's share of the time in which a part was due on the wait's thread."""
    for thread in np.unique(waits["thread"]).tolist():
        own = np.flatnonzero(parts.thread == thread)
        own = own[np.argsort(parts.due_ns[own], kind="stable")]
        due_ns, end_ns = parts.due_ns[own], np.maximum.accumulate(parts.end_ns[own])
        for wait in np.flatnonzero(waits["thread"] == thread).tolist():
            start, end = int(waits["start_ns"][wait]), int(waits["end_ns"][wait])
            low, high = int(np.searchsorted(end_ns, start, side="right")), int(np.searchsorted(due_ns, end))
            for part in own[low:high].tolist():
                delay = min(end, int(parts.end_ns[part])) - max(start, int(parts.due_ns[part]))
                if delay > 0:
                    yield Overlap(part=part, wait=wait, delay_ns=delay)
