"""What the events of a timeline are called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from perfsuite.records.engine_trace import EngineTrace, EventKind, ThreadState, TracedThread
from perfsuite.records.events import Node
from perfsuite.records.trace_levels import TraceLevel
from perfsuite.trace.timeline.lanes import Ints
from perfsuite.trace.timeline.tracks import Label, printable


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Labels, and which one each event has, by its position among the events of its kind."""

    labels: tuple[Label, ...]
    of_event: Ints


def label_phases(trace: EngineTrace) -> Labelled:
    """Call phases by their names."""

    def label(value: int) -> Label:
        return _label(_nth(trace.phases, value, "phase"), "phase", "timed by the driver")

    return _by_value(trace, EventKind.PHASE, label)


def label_tokens(trace: EngineTrace) -> Labelled:
    """Call batches by how many tokens they have."""

    def label(value: int) -> Label:
        name = "batch" if value < 1 else "1 token" if value == 1 else f"{value} tokens"
        return _label(name, "token", "llama_decode")

    return _by_value(trace, EventKind.TOKEN, label)


def label_graphs(trace: EngineTrace) -> Labelled:
    """Call graphs by their number."""
    numbers, of_event = np.unique(trace.of(EventKind.GRAPH)["graph"], return_inverse=True)
    return Labelled(labels=tuple(_graph_label(trace, number) for number in numbers.tolist()), of_event=of_event)


def label_operators(trace: EngineTrace) -> Labelled:
    """Call operators by operation and tensor, and tell what they are made from."""
    events = trace.of(EventKind.OPERATOR)
    offsets = np.cumsum([0, *(len(graph) for graph in trace.graphs)])
    labels = [_operator_label(node) for graph in trace.graphs for node in graph]
    graph, node = events["graph"].astype(np.int64), events["node"].astype(np.int64)
    sizes = np.diff(offsets, append=offsets[-1])
    known = (graph >= 0) & (graph < len(trace.graphs))
    known &= (node >= 0) & (node < sizes[np.where(known, graph, 0)])
    of_event = np.where(known, offsets[np.where(known, graph, 0)] + node, len(labels))
    return Labelled(labels=(*labels, _label("operator", "operator", "of no known graph")), of_event=of_event)


def label_states(trace: EngineTrace) -> Labelled:
    """Call states of threads by what they are and on which processor."""
    events = trace.of(EventKind.THREAD_STATE)
    pairs, of_event = np.unique((events["value"] << 16) + (events["cpu"].astype(np.int64) + 1), return_inverse=True)
    labels = [_state_label(pair >> 16, (pair & 0xFFFF) - 1) for pair in pairs.tolist()]
    return Labelled(labels=tuple(labels), of_event=of_event)


def label_kernels(trace: EngineTrace) -> Labelled:
    """Call kernels by their names."""

    def label(value: int) -> Label:
        return _label(_nth(trace.kernels, value, "kernel"), "kernel", "while it ran on the device")

    return _by_value(trace, EventKind.KERNEL, label)


def label_levels(trace: EngineTrace) -> Labelled:
    """Call a switch of levels by what is recorded from then on."""

    def label(value: int) -> Label:
        names = [level.name or "" for level in TraceLevel if value & level]
        return _label(f"levels: {', '.join(names).lower() or 'none'}", "levels", "recorded from here on")

    return _by_value(trace, EventKind.LEVELS, label)


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


def _by_value(trace: EngineTrace, kind: EventKind, label: Callable[[int], Label]) -> Labelled:
    values, of_event = np.unique(trace.of(kind)["value"], return_inverse=True)
    return Labelled(labels=tuple(label(value) for value in values.tolist()), of_event=of_event)


def _nth(names: Sequence[str], value: int, otherwise: str) -> str:
    return names[value] if 0 <= value < len(names) else otherwise


def _graph_label(trace: EngineTrace, number: int) -> Label:
    if not 0 <= number < len(trace.graphs):
        return _label("graph", "graph", "of unknown structure")
    return _label(f"graph {number}", "graph", f"{len(trace.graphs[number])} operators")


def _operator_label(node: Node) -> Label:
    sources = ", ".join(f"{each.type} {shape_text(each.ne)}" for each in node.sources)
    about = f"{node.tensor.type} {shape_text(node.tensor.ne)} from {sources}"
    return _label(f"{node.ops} {node.tensor.name}", "operator", about)


def _state_label(state: int, cpu: int) -> Label:
    known = {each.value: each.name.lower() for each in ThreadState}
    name = known.get(state, "unknown")
    where = (
        ""
        if cpu < 0 or state == ThreadState.IDLE
        else f" on CPU {cpu}"
        if state == ThreadState.RUNNING
        else (f" for CPU {cpu}")
    )
    return _label(f"{name}{where}", "thread state", "by sched_switch and sched_wakeup")
