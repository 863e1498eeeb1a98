"""Where the operators of a call of llama_decode run: the splits by backend, and what a device refuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from perfsuite.records.engine_columns import splits_of
from perfsuite.records.events import EngineRecord, Node, Phase
from perfsuite.trace.operators import RecordedOperator, timed_operators

#: How ggml calls the backend that computes on the processor.
PROCESSOR_BACKEND = "CPU"

_Split = tuple[str, tuple[Node, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendShare:
    """What one backend was given in one call."""

    backend: str
    n_splits: int
    #: Without views and other nodes that nobody computes.
    n_operators: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorOperator:
    """Operators of one role that the processor's backend computes."""

    role: str
    op: str
    #: Of the first source, which is the weights where there are any.
    source_type: str
    #: The dimensions of the first of them, innermost first.
    ne: tuple[int, int, int, int]
    n_nodes: int
    #: Devices that cannot compute it. Where there are none it runs here for the place of its weights: its layer is not
    #: offloaded, or it gathers the input, which llama.cpp never offloads.
    refused_by: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """One call, in the order in which its parts were given away."""

    phase: Phase
    #: The backend of each split, in order.
    splits: tuple[str, ...]
    shares: tuple[BackendShare, ...]
    on_processor: tuple[ProcessorOperator, ...]


def placement(record: EngineRecord, phase: Phase) -> Placement | None:
    """Return where the operators of the last call of a phase ran; None where the record has no such call.

    A call of more than one ubatch gives away its parts once for each of them. The record must be that of the
    ``splits`` recorder.
    """
    spans = [span for span in record.spans if span.phase is phase]
    if not spans:
        return None
    last = max(spans, key=lambda span: span.start_ns)
    splits = [
        (record.backends[each["backend"]], record.graphs[each["graph"]])
        for each in splits_of(record)
        if last.start_ns <= each["launch_ns"] <= last.end_ns
    ]
    backends = tuple(backend for backend, _ in splits)
    return Placement(phase=phase, splits=backends, shares=_shares(splits), on_processor=_on_processor(splits))


def _shares(splits: Sequence[_Split]) -> tuple[BackendShare, ...]:
    n_operators: dict[str, list[int]] = {}
    for backend, graph in splits:
        n_operators.setdefault(backend, []).append(sum(node.timed for node in graph))
    return tuple(
        BackendShare(backend=backend, n_splits=len(found), n_operators=sum(found))
        for backend, found in n_operators.items()
    )


def _on_processor(splits: Sequence[_Split]) -> tuple[ProcessorOperator, ...]:
    """Group by role, in the order in which roles first occur; one role may be refused for some shapes only."""
    found: dict[tuple[str, ...], list[RecordedOperator]] = {}
    for backend, graph in splits:
        for operator in timed_operators(graph) if backend == PROCESSOR_BACKEND else ():
            key = (operator.role, operator.op, _source_type(operator.node), *operator.node.refused_by)
            found.setdefault(key, []).append(operator)
    return tuple(
        ProcessorOperator(
            role=operator.role,
            op=operator.op,
            source_type=_source_type(operator.node),
            ne=operator.node.tensor.ne,
            n_nodes=len(group),
            refused_by=operator.node.refused_by,
        )
        for operator, group in ((group[0], group) for group in found.values())
    )


def _source_type(node: Node) -> str:
    return (node.sources[0] if node.sources else node.tensor).type


def in_runs(backends: Sequence[str]) -> str:
    """Say the order of splits in short: ``CPU, OpenCL x2, CPU``."""
    runs = [(name, len(list(group))) for name, group in groupby(backends)]
    return ", ".join(name if n == 1 else f"{name} x{n}" for name, n in runs)
