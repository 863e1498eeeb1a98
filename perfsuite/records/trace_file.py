"""Keeps traces in files, and reads them as far as they are whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from perfsuite.errors import MeasurementError
from perfsuite.records.codec import rebuilt, unpack
from perfsuite.records.engine_trace import (
    EVENT_DTYPE,
    EXPERT_DTYPE,
    NOTHING,
    EngineTrace,
    EventKind,
    Events,
    ProbeCost,
    TracedThread,
)
from perfsuite.records.trace_writer import (
    FIELDS,
    MAGIC,
    Block,
    BlockKind,
    Graphs,
    TraceEnd,
    TraceHeader,
    TraceTables,
    TraceWriter,
    graphs_from_plain,
    read_blocks,
)

#: Events in one block: what is lost at most when a writer is killed.
_CHUNK = 1 << 16


def write_trace(path: Path, trace: EngineTrace, *, overwrites: bool = False) -> None:
    """Write a trace whole.

    Raises MeasurementError: the file is there already and may not be replaced, or cannot be written; then it holds what
    found room.
    """
    header = TraceHeader(**{name: getattr(trace, name) for name in TraceHeader.__slots__})
    with TraceWriter(path, header, overwrites=overwrites) as writer:
        writer.tables(TraceTables(**{name: getattr(trace, name) for name in TraceTables.__slots__}))
        writer.graphs(trace.graphs)
        _write_arrays(writer, trace)
        writer.end(TraceEnd(**{name: getattr(trace, name) for name in TraceEnd.__slots__}))


def _write_arrays(writer: TraceWriter, trace: EngineTrace) -> None:
    """Write events in pieces, and before each what was counted and chosen until then."""
    n_counters = n_experts = 0
    for first in range(0, trace.events.size, _CHUNK):
        events = trace.events[first : first + _CHUNK]
        until = max(n_counters, int(events["counters"].max()) + 1)
        chosen = max(n_experts, int(np.searchsorted(trace.experts["ns"], events["start_ns"][-1], side="right")))
        writer.counters(trace.counters[n_counters:until])
        writer.experts(trace.experts[n_experts:chosen])
        writer.events(events)
        n_counters, n_experts = until, chosen
    writer.counters(trace.counters[n_counters:])
    writer.experts(trace.experts[n_experts:])


def read_trace(path: Path) -> EngineTrace:
    """Read a trace; of one that breaks off before its end, `cut` says where.

    Raises MeasurementError: the file cannot be read, is no trace, or one of another layout; the message says what was
    seen.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise MeasurementError(f"{path}: cannot be read ({error.strerror})") from error
    if content[: len(MAGIC)] != MAGIC:
        raise MeasurementError(f"{path}: begins with {content[: len(MAGIC)]!r}, a trace with {MAGIC!r}")
    return _Content(path, content).trace()


class _Content:
    """What the blocks of one file hold together."""

    def __init__(self, path: Path, content: bytes) -> None:
        self._path = path
        self._header: TraceHeader | None = None
        self._tables = TraceTables()
        self._graphs: Graphs = ()
        self._arrays: dict[BlockKind, list[memoryview]] = {
            kind: [] for kind in (BlockKind.EVENTS, BlockKind.COUNTERS, BlockKind.EXPERTS)
        }
        self._end: TraceEnd | None = None
        self._cut: str | None = None
        for block in read_blocks(content):
            if isinstance(block, Block):
                self._take(block)
            else:
                self._cut = block.text
        self._size = len(content)

    def trace(self) -> EngineTrace:
        header, end = self._header, self._end or TraceEnd()
        if header is None:
            raise MeasurementError(f"{self._path}: {self._cut or 'ends behind its first bytes'}; nothing can be read")
        counters = self._rows(BlockKind.COUNTERS, np.dtype("<i8"), max(1, len(header.counter_names)))
        return EngineTrace(
            **{name: getattr(part, name) for part in (header, self._tables, end) for name in part.__slots__}
            | {"cut": self._cut_text()},
            events=self._events(len(counters)),
            graphs=self._graphs,
            counters=counters.reshape(len(counters), len(header.counter_names)),
            experts=self._rows(BlockKind.EXPERTS, EXPERT_DTYPE),
        )

    def _take(self, block: Block) -> None:
        try:
            match block.kind:
                case BlockKind.HEADER:
                    plain = unpack(block.payload)
                    if (fields := plain["fields"]) != FIELDS:
                        raise MeasurementError(
                            f"{self._path}: its events have the fields {fields}; this suite reads {FIELDS}"
                        )
                    self._header = rebuilt(plain, TraceHeader)
                case BlockKind.TABLES:
                    self._tables += rebuilt(unpack(block.payload), TraceTables, threads=TracedThread)
                case BlockKind.GRAPHS:
                    self._graphs += graphs_from_plain(unpack(block.payload))
                case BlockKind.END:
                    self._end = rebuilt(unpack(block.payload), TraceEnd, probe_costs=ProbeCost)
                case _:
                    self._arrays[block.kind].append(block.payload)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            what = f"{block.kind.name.lower()} ({type(error).__name__}: {error})"
            raise MeasurementError(f"{self._path}: damaged: this suite cannot read its {what}") from error

    def _rows(self, kind: BlockKind, dtype: np.dtype[Any], columns: int = 1) -> npt.NDArray[Any]:
        size = dtype.itemsize * columns
        wrong = next((len(payload) for payload in self._arrays[kind] if len(payload) % size), None)
        if wrong is not None:
            raise MeasurementError(f"{self._path}: {wrong} bytes of {kind.name.lower()}, expected a multiple of {size}")
        parts = [np.frombuffer(payload, dtype) for payload in self._arrays[kind]]
        rows = np.concatenate([np.empty(0, dtype), *parts])
        return rows.reshape(-1, columns) if columns > 1 else rows

    def _events(self, n_counters: int) -> Events:
        """Return the events; what they refer to and is not there, for the file was cut, is NOTHING."""
        events = self._rows(BlockKind.EVENTS, EVENT_DTYPE)
        tables = self._tables
        for field, n_known in (("thread", len(tables.threads)), ("graph", len(self._graphs)), ("counters", n_counters)):
            events[field][events[field] >= n_known] = NOTHING
        kinds = (EventKind.GRAPH, EventKind.KERNEL, EventKind.PHASE)
        for kind, names in zip(kinds, (tables.backends, tables.kernels, tables.phases), strict=True):
            events["value"][(events["kind"] == kind) & (events["value"] >= len(names))] = NOTHING
        return events

    def _cut_text(self) -> str | None:
        if self._cut:
            return f"{self._path.name}: {self._cut}"
        if self._end is None:
            return (
                f"{self._path.name}: ends at byte {self._size} without an end: its writer was killed, or still writes"
            )
        return self._end.cut
