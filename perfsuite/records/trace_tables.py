"""The parts of a trace that are no arrays, as plain values for its file: header, tables, graphs, end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfsuite.records.codec import rebuilt
from perfsuite.records.engine_trace import EVENT_DTYPE, EXPERT_DTYPE, ProbeCost, TracedThread, TraceRecorder
from perfsuite.records.events import Node, Tensor
from perfsuite.records.trace_levels import TraceLevel

#: How the fields of events and experts lie in the file.
FIELDS = {
    "events": [list(each[:2]) for each in EVENT_DTYPE.descr],
    "experts": [list(each[:2]) for each in EXPERT_DTYPE.descr],
}

Graphs = tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceHeader:
    """What is known before the first event; the fields are those of `EngineTrace`."""

    recorder: TraceRecorder
    levels: TraceLevel
    pid: int | None = None
    command: tuple[str, ...] = ()
    engine_version: str = ""
    counter_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceTables:
    """What events refer to by position; the fields are those of `EngineTrace`."""

    threads: tuple[TracedThread, ...] = ()
    backends: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()

    def __add__(self, other: TraceTables) -> TraceTables:
        """Return these with others behind them."""
        return TraceTables(**{name: getattr(self, name) + getattr(other, name) for name in TraceTables.__slots__})


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEnd:
    """What is known once all is recorded; the fields are those of `EngineTrace`."""

    n_experts: int | None = None
    n_lost: int = 0
    probe_costs: tuple[ProbeCost, ...] = ()
    cut: str | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tensors:
    tensors: tuple[Tensor, ...]


def plain_graphs(graphs: Iterable[Sequence[Node]]) -> dict[str, Any]:
    """Return graphs as plain values, each tensor once."""
    places: dict[Tensor, int] = {}

    def place(tensor: Tensor) -> int:
        return places.setdefault(tensor, len(places))

    plain = [
        [[place(node.tensor), node.op, [place(each) for each in node.sources], node.fused_op] for node in graph]
        for graph in graphs
    ]
    tensors = [[each.name, each.type, list(each.ne), list(each.nb), each.root] for each in places]
    return {"tensors": tensors, "graphs": plain}


def graphs_from_plain(plain: Mapping[str, Any]) -> Graphs:
    """Rebuild from `plain_graphs`."""
    tensors = rebuilt(plain, _Tensors, tensors=Tensor).tensors
    return tuple(
        tuple(
            Node(tensor=tensors[tensor], op=op, sources=tuple(tensors[each] for each in sources), fused_op=fused_op)
            for tensor, op, sources, fused_op in graph
        )
        for graph in plain["graphs"]
    )
