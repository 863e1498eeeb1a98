"""What a timeline shows: tracks, and on them slices, instants and counters, all on the monotonic clock."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import EngineTrace, EventKind, Events, Ints, ThreadState, TracedThread
from perfsuite.records.events import Node
from perfsuite.records.trace_levels import TraceLevel


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


def printable(text: str) -> str:
    """Return a text from a trace as it may be shown: no control characters, none that turn the line, not too long."""
    shown = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text[: MOST_CHARACTERS + 1])
    return shown if len(text) <= MOST_CHARACTERS else f"{shown[: MOST_CHARACTERS - 1]}…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Labels, and which one each event has, by its position among the events of its kind."""

    labels: tuple[Label, ...]
    of_event: Ints

    def part(self, chosen: npt.NDArray[np.bool_]) -> Labelled:
        return Labelled(labels=self.labels, of_event=self.of_event[chosen])


def label_events(trace: EngineTrace, kind: EventKind) -> Labelled:
    """Call the events of a kind, which may be any but operators, by their names; without one, by what they are."""
    values, of_event = np.unique(_values(trace.of(kind), kind), return_inverse=True)
    labels = tuple(_label(*_CALLED[kind](trace, value)) for value in values.tolist())
    return Labelled(labels=labels, of_event=of_event)


def label_operators(trace: EngineTrace) -> Labelled:
    """Call operators by operation and tensor, and say what they are made from."""
    events = trace.of(EventKind.OPERATOR)
    offsets = np.cumsum([0, *(len(graph) for graph in trace.graphs)])
    labels = [_operator_label(node) for graph in trace.graphs for node in graph]
    graph, node = events["graph"].astype(np.int64), events["node"].astype(np.int64)
    sizes = np.diff(offsets, append=offsets[-1])
    known = (graph >= 0) & (graph < len(trace.graphs))
    known &= (node >= 0) & (node < sizes[np.where(known, graph, 0)])
    of_event = np.where(known, offsets[np.where(known, graph, 0)] + node, len(labels))
    return Labelled(labels=(*labels, _label("operator", "operator", "of no known graph")), of_event=of_event)


def shape_text(ne: Sequence[int]) -> str:
    """Write dimensions without those at the end that are 1: ``576x12``."""
    sizes = list(ne)
    while len(sizes) > 1 and sizes[-1] == 1:
        sizes.pop()
    return "x".join(map(str, sizes))


def thread_text(thread: TracedThread) -> str:
    """Call a thread by its name and its number."""
    number = str(thread.tid)
    return printable(thread.name if thread.name.endswith(number) else f"{thread.name or 'thread'} {number}")


def _label(name: str, category: str, about: str) -> Label:
    return Label(name=printable(name), category=category, about=printable(about))


def _operator_label(node: Node) -> Label:
    sources = ", ".join(f"{each.type} {shape_text(each.ne)}" for each in node.sources)
    about = f"{node.tensor.type} {shape_text(node.tensor.ne)} from {sources}"
    return _label(f"{node.ops} {node.tensor.name}", "operator", about)


def _values(events: Events, kind: EventKind) -> Ints:
    if kind is EventKind.THREAD_STATE:
        states: Ints = (events["value"] << 16) + (events["cpu"].astype(np.int64) + 1)
        return states
    values: Ints = events["graph" if kind is EventKind.GRAPH else "value"]
    return values


def _nth(names: Sequence[str], value: int, otherwise: str) -> str:
    return names[value] if 0 <= value < len(names) else otherwise


def _graph(trace: EngineTrace, number: int) -> tuple[str, str, str]:
    if not 0 <= number < len(trace.graphs):
        return "graph", "graph", "of unknown structure"
    return f"graph {number}", "graph", f"{len(trace.graphs[number])} operators"


def _token(_: EngineTrace, n_tokens: int) -> tuple[str, str, str]:
    name = "batch" if n_tokens < 1 else "1 token" if n_tokens == 1 else f"{n_tokens} tokens"
    return name, "token", "llama_decode"


def _levels(_: EngineTrace, value: int) -> tuple[str, str, str]:
    names = [level.name or "" for level in TraceLevel if value & level]
    return f"levels: {', '.join(names).lower() or 'none'}", "levels", "recorded from here on"


def _state(_: EngineTrace, value: int) -> tuple[str, str, str]:
    state, cpu = value >> 16, (value & 0xFFFF) - 1
    name = {each.value: each.name.lower() for each in ThreadState}.get(state, "unknown")
    place = "" if cpu < 0 or state == ThreadState.IDLE else " on CPU" if state == ThreadState.RUNNING else " for CPU"
    return f"{name}{place} {cpu}" if place else name, "thread state", "by sched_switch and sched_wakeup"


#: By kind: name, category and more of an event, by what distinguishes it.
_CALLED: dict[EventKind, Callable[[EngineTrace, int], tuple[str, str, str]]] = {
    EventKind.PHASE: lambda trace, at: (_nth(trace.phases, at, "phase"), "phase", "timed by the driver"),
    EventKind.KERNEL: lambda trace, at: (_nth(trace.kernels, at, "kernel"), "kernel", "while it ran on the device"),
    EventKind.TOKEN: _token,
    EventKind.GRAPH: _graph,
    EventKind.THREAD_STATE: _state,
    EventKind.LEVELS: _levels,
}
