"""Lays a trace out as a timeline: which tracks there are, and what is on each.

Counters over time: how fast each thread counts during each operator.

    rate = count / (end - start)        per second, of one operator on one thread

A rate holds until the thread's next operator; behind the last one of an evaluation it is 0.

Arrows from an operator to the kernels that compute it.

An arrow begins at the first slice of the operator, over all threads, and passes through its kernels in the order of
their starts. A kernel belongs to the operator of its evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from perfsuite.records.engine_trace import NOTHING, EngineTrace, EventKind, Events, Ints
from perfsuite.trace.timeline.tracks import (
    POINT_DTYPE,
    SLICE_DTYPE,
    Arrow,
    Label,
    Labelled,
    Points,
    Slices,
    Timeline,
    Track,
    TrackKind,
    label_events,
    label_operators,
    lanes,
    printable,
    thread_text,
)
from perfsuite.units import NS_PER_S


def flows(operators: Events, kernels: Events) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the arrows of operators, then of kernels: number of the arrow and what it does, 0 where there is none.

    The events of either are in the order of their starts.
    """
    origins = _origins(operators, kernels)
    led = np.flatnonzero(origins >= 0)
    first, number = np.unique(origins[led], return_inverse=True)
    operator_flow = np.zeros(len(operators), dtype=np.int64)
    operator_flow[first] = np.arange(1, len(first) + 1)
    kernel_flow = np.zeros(len(kernels), dtype=np.int64)
    kernel_flow[led] = number + 1
    kernel_arrow = np.where(kernel_flow > 0, int(Arrow.PASSES), 0)
    last = np.zeros(len(first), dtype=np.int64)
    last[number] = led
    kernel_arrow[last] = Arrow.ENDS
    return operator_flow, np.where(operator_flow > 0, int(Arrow.BEGINS), 0), kernel_flow, kernel_arrow


def _origins(operators: Events, kernels: Events) -> Ints:
    """Return for each kernel the position of its operator's first slice; -1 where there is none."""
    found = np.full(len(kernels), -1, dtype=np.int64)
    known = np.flatnonzero((kernels["node"] != NOTHING) & (kernels["evaluation"] != NOTHING))
    if not len(operators) or not len(known):
        return found
    both = np.concatenate([operators, kernels[known]])
    graph, node = (both[name].astype(np.int64) for name in ("graph", "node"))
    keys = (both["evaluation"].astype(np.int64) << 32) + graph * (int(node.max()) + 2) + node
    unique, first = np.unique(keys[: len(operators)], return_index=True)
    at = np.minimum(np.searchsorted(unique, keys[len(operators) :]), len(unique) - 1)
    found[known] = np.where(unique[at] == keys[len(operators) :], first[at], -1)
    return found


def counter_points(trace: EngineTrace, operators: Events) -> dict[int, tuple[Points, ...]]:
    """Return by thread the points of each counter, in the order of the counters' names; `track` is not set yet."""
    if not len(trace.counters) or not trace.counter_names:
        return {}
    counted = operators[(operators["counters"] != NOTHING) & (operators["end_ns"] > operators["start_ns"])]
    found = {}
    for thread in np.unique(counted["thread"]).tolist():
        own = counted[counted["thread"] == thread]
        found[thread] = tuple(_points(trace, own, column) for column in range(len(trace.counter_names)))
    return found


def _points(trace: EngineTrace, own: Events, column: int) -> Points:
    counts = trace.counters[own["counters"], column]
    own, counts = own[counts != NOTHING], counts[counts != NOTHING]
    rates = counts * (NS_PER_S / (own["end_ns"] - own["start_ns"]))
    last = np.flatnonzero(np.diff(own["evaluation"], append=NOTHING - 1)) if len(own) else np.zeros(0, dtype=np.int64)
    points = np.zeros(len(own) + len(last), POINT_DTYPE)
    behind = np.zeros(len(points), dtype=np.bool_)
    behind[last + 1 + np.arange(len(last))] = True
    points["ns"][~behind], points["value"][~behind] = own["start_ns"], np.rint(rates)
    points["ns"][behind] = own["end_ns"][last]
    return points


def build_timeline(trace: EngineTrace) -> Timeline:
    """Lay out phases, tokens, graphs by backend, operators, states and counters by thread, kernels and levels.

    Events before the clock's beginning, which only a broken trace has, are left out.
    """
    if bool((trace.events["start_ns"] < 0).any()):
        trace = replace(trace, events=trace.events[trace.events["start_ns"] >= 0])
    name = printable(trace.command[0].rpartition("/")[2] if trace.command else trace.recorder.value)
    found = _Layout(tracks=[Track(name=name, kind=TrackKind.PROCESS, parent=None, tid=trace.pid)])
    for name, kind in (("phases", EventKind.PHASE), ("tokens", EventKind.TOKEN)):
        found.add_plain(name, trace.of(kind), label_events(trace, kind))
    _add_graphs(found, trace)
    kernels, operators = trace.of(EventKind.KERNEL), trace.of(EventKind.OPERATOR)
    arrows = flows(operators, kernels)
    _add_threads(found, trace, operators, arrows[:2])
    where = f" on {trace.backends[0]}" if len(trace.backends) == 1 else ""
    found.add_plain(f"kernels{where}", kernels, label_events(trace, EventKind.KERNEL), arrows=arrows[2:])
    found.add_plain("levels of the recorder", trace.of(EventKind.LEVELS), label_events(trace, EventKind.LEVELS))
    return Timeline(
        tracks=tuple(found.tracks),
        labels=tuple(found.labels),
        slices=_joined(found.slices, SLICE_DTYPE),
        points=_joined(found.points, POINT_DTYPE),
        pid=trace.pid,
    )


@dataclass(slots=True)
class _Layout:
    tracks: list[Track]
    labels: list[Label] = field(default_factory=list)
    slices: list[Slices] = field(default_factory=list)
    points: list[Points] = field(default_factory=list)

    def add_track(self, name: str, kind: TrackKind, **fields: int | str | None) -> int:
        """Add a track, below the process where no parent is named; return its position."""
        self.tracks.append(Track(name=printable(name), kind=kind, **{"parent": 0, **fields}))  # type: ignore[arg-type]
        return len(self.tracks) - 1

    def add_plain(
        self,
        name: str,
        events: Events,
        labelled: Labelled,
        *,
        parent: int = 0,
        track: int | None = None,
        arrows: tuple[Ints, Ints] | None = None,
    ) -> None:
        """Add events as slices, on as many tracks of one name as they need not to overlap; on none if there are none.

        `track` is the first of them where it is there already.
        """
        if not len(events):
            return
        first_label = len(self.labels)
        self.labels.extend(labelled.labels)
        end_ns = np.maximum(events["end_ns"], events["start_ns"])
        lane = lanes(events["start_ns"], end_ns)
        n_lanes = int(lane.max()) + 1
        places = [] if track is None else [track]
        places += [self.add_track(name, TrackKind.SLICES, parent=parent) for _ in range(n_lanes - len(places))]
        slices = np.empty(len(events), SLICE_DTYPE)
        for each in ("start_ns", "cpu", "iteration", "evaluation"):
            slices[each] = events[each]
        is_instant = (events["end_ns"] == NOTHING) | (events["kind"] == EventKind.LEVELS)
        slices["end_ns"] = np.where(is_instant, NOTHING, end_ns)
        slices["track"] = np.asarray(places, dtype=np.int32)[lane]
        slices["label"] = labelled.of_event + first_label
        slices["flow"], slices["arrow"] = arrows if arrows is not None else (NOTHING, 0)
        self.slices.append(slices)


def _add_graphs(found: _Layout, trace: EngineTrace) -> None:
    graphs = trace.of(EventKind.GRAPH)
    labelled = label_events(trace, EventKind.GRAPH)
    for backend in np.unique(graphs["value"]):
        known = 0 <= backend < len(trace.backends)
        chosen = graphs["value"] == backend
        name = f"graphs on {trace.backends[backend]}" if known else "graphs"
        found.add_plain(name, graphs[chosen], labelled.part(chosen))


def _add_threads(found: _Layout, trace: EngineTrace, operators: Events, arrows: tuple[Ints, Ints]) -> None:
    """Add for each thread its operators, on its own track, and below that its states and its counters."""
    labelled = label_operators(trace)
    states, labelled_states = trace.of(EventKind.THREAD_STATE), label_events(trace, EventKind.THREAD_STATE)
    points = counter_points(trace, operators)
    for position, thread in enumerate(trace.threads):
        own = operators["thread"] == position
        own_states = states["thread"] == position
        if not own.any() and not own_states.any():
            continue
        has_id = trace.pid is not None and thread.tid > 0
        place = found.add_track(
            thread_text(thread), TrackKind.THREAD if has_id else TrackKind.SLICES, tid=thread.tid if has_id else None
        )
        found.add_plain(
            f"operators of {thread.tid}",
            operators[own],
            labelled.part(own),
            parent=place,
            track=place,
            arrows=(arrows[0][own], arrows[1][own]),
        )
        found.add_plain(f"state of {thread.tid}", states[own_states], labelled_states.part(own_states), parent=place)
        for name, of_thread in zip(trace.counter_names, points.get(position, ()), strict=False):
            if len(of_thread):
                counter = found.add_track(f"{name} of {thread.tid}", TrackKind.COUNTER, parent=place, unit=f"{name}/s")
                of_thread["track"] = counter
                found.points.append(of_thread)


def _joined(parts: list[Slices], dtype: np.dtype[np.void]) -> Slices:
    return np.concatenate(parts) if parts else np.empty(0, dtype)
