"""The parts of a trace that are no arrays, as plain values for its file: header, tables, graphs, end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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

    def to_plain(self) -> dict[str, Any]:
        """Return dicts, lists, numbers and strings."""
        return {
            "fields": FIELDS,
            "recorder": self.recorder.value,
            "levels": int(self.levels),
            "pid": self.pid,
            "command": list(self.command),
            "engine_version": self.engine_version,
            "counter_names": list(self.counter_names),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> TraceHeader:
        """Rebuild from `to_plain`."""
        return cls(
            recorder=TraceRecorder(plain["recorder"]),
            levels=TraceLevel(plain["levels"]),
            pid=plain["pid"],
            command=tuple(plain["command"]),
            engine_version=plain["engine_version"],
            counter_names=tuple(plain["counter_names"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceTables:
    """What events refer to by position; the fields are those of `EngineTrace`."""

    threads: tuple[TracedThread, ...] = ()
    backends: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()

    def __add__(self, other: TraceTables) -> TraceTables:
        """Return these with others behind them."""
        return TraceTables(
            threads=self.threads + other.threads,
            backends=self.backends + other.backends,
            kernels=self.kernels + other.kernels,
            phases=self.phases + other.phases,
        )

    def to_plain(self) -> dict[str, Any]:
        """Return dicts, lists, numbers and strings."""
        return {
            "threads": [[each.tid, each.name] for each in self.threads],
            "backends": list(self.backends),
            "kernels": list(self.kernels),
            "phases": list(self.phases),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> TraceTables:
        """Rebuild from `to_plain`."""
        return cls(
            threads=tuple(TracedThread(tid=tid, name=name) for tid, name in plain["threads"]),
            backends=tuple(plain["backends"]),
            kernels=tuple(plain["kernels"]),
            phases=tuple(plain["phases"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEnd:
    """What is known once all is recorded; the fields are those of `EngineTrace`."""

    n_experts: int | None = None
    n_lost: int = 0
    probe_costs: tuple[ProbeCost, ...] = ()
    cut: str | None = None
    problems: tuple[str, ...] = ()

    def to_plain(self) -> dict[str, Any]:
        """Return dicts, lists, numbers and strings."""
        return {
            "n_experts": self.n_experts,
            "n_lost": self.n_lost,
            "probe_costs": [[each.name, each.n_runs, each.run_time_ns] for each in self.probe_costs],
            "cut": self.cut,
            "problems": list(self.problems),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> TraceEnd:
        """Rebuild from `to_plain`."""
        return cls(
            n_experts=plain["n_experts"],
            n_lost=plain["n_lost"],
            probe_costs=tuple(
                ProbeCost(name=name, n_runs=n_runs, run_time_ns=run_time_ns)
                for name, n_runs, run_time_ns in plain["probe_costs"]
            ),
            cut=plain["cut"],
            problems=tuple(plain["problems"]),
        )


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
    tensors = [
        Tensor(name=name, type=type_name, ne=tuple(ne), nb=tuple(nb), root=root)
        for name, type_name, ne, nb, root in plain["tensors"]
    ]
    return tuple(
        tuple(
            Node(tensor=tensors[tensor], op=op, sources=tuple(tensors[each] for each in sources), fused_op=fused_op)
            for tensor, op, sources, fused_op in graph
        )
        for graph in plain["graphs"]
    )
