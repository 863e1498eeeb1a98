"""Keeps traces in files, and reads them as far as they are whole.

Behind `MAGIC` come blocks, each with its kind, its length and a checksum; nothing is written twice, so that a file is
good up to the end of its last whole block, whoever was killed while writing it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from perfsuite.errors import MeasurementError
from perfsuite.records.codec import from_row, pack, rebuilt, to_plain, unpack
from perfsuite.records.engine_trace import (
    EVENT_DTYPE,
    EXPERT_DTYPE,
    NOTHING,
    EngineTrace,
    EventKind,
    Events,
    ProbeCost,
    TracedThread,
    TraceFacts,
)
from perfsuite.records.events import Node, Tensor

MAGIC = b"PSTRACE1"
#: Kind, checksum of kind and payload, bytes of the payload.
HEAD = struct.Struct("<4sIQ")


class BlockKind(bytes, Enum):
    """What a block holds."""

    HEADER = b"HEAD"
    TABLES = b"TABL"
    GRAPHS = b"GRPH"
    EVENTS = b"EVNT"
    COUNTERS = b"CNTR"
    EXPERTS = b"EXPT"
    END = b"END."


#: How the fields of events and experts lie in the file.
_FIELDS = {
    "events": [list(each[:2]) for each in EVENT_DTYPE.descr],
    "experts": [list(each[:2]) for each in EXPERT_DTYPE.descr],
}
#: What is known of a trace before its events, what these refer to by position, and what is known at its end.
_HEADER = ("recorder", "levels", "pid", "command", "engine_version", "counter_names")
_TABLES = ("threads", "backends", "kernels", "phases")
_END = ("n_experts", "n_lost", "probe_costs", "cut", "problems")

#: Events in one block: what is lost at most when a writer is killed.
_CHUNK = 1 << 16

_Graphs = tuple[tuple[Node, ...], ...]


def write_trace(path: Path, trace: EngineTrace, *, overwrites: bool = False) -> None:
    """Write a trace whole.

    Raises MeasurementError: the file is there already and may not be replaced, or cannot be written; then it holds what
    found room.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb" if overwrites else "xb") as out:
            out.write(MAGIC)
            for kind, payload in _blocks(trace):
                out.write(block_head(kind, payload))
                out.write(payload)
    except FileExistsError:
        raise MeasurementError(f"{path}: already exists; name another file, or remove it") from None
    except OSError as error:
        raise MeasurementError(f"{path}: cannot be written ({error.strerror})") from error


def block_head(kind: BlockKind, payload: bytes) -> bytes:
    """Return what is written in front of a payload."""
    return HEAD.pack(kind.value, _checksum(kind.value, payload), len(payload))


def _checksum(kind: bytes, payload: bytes | memoryview) -> int:
    return zlib.crc32(payload, zlib.crc32(kind))


def _blocks(trace: EngineTrace) -> Iterator[tuple[BlockKind, bytes]]:
    """Yield the blocks of a trace: events in pieces, and before each what was counted and chosen until then."""
    yield BlockKind.HEADER, pack({"fields": _FIELDS, **_plain(trace, _HEADER)})
    yield BlockKind.TABLES, pack(_plain(trace, _TABLES, rows=["threads"]))
    yield BlockKind.GRAPHS, pack(_plain_graphs(trace.graphs))
    counters = trace.counters.astype("<i8", copy=False)
    n_counters = n_experts = 0
    for first in range(0, trace.events.size, _CHUNK):
        events = trace.events[first : first + _CHUNK]
        until = max(n_counters, int(events["counters"].max()) + 1)
        chosen = max(n_experts, int(np.searchsorted(trace.experts["ns"], events["start_ns"][-1], side="right")))
        yield from _rows(BlockKind.COUNTERS, counters[n_counters:until])
        yield from _rows(BlockKind.EXPERTS, trace.experts[n_experts:chosen])
        yield from _rows(BlockKind.EVENTS, events)
        n_counters, n_experts = until, chosen
    yield from _rows(BlockKind.COUNTERS, counters[n_counters:])
    yield from _rows(BlockKind.EXPERTS, trace.experts[n_experts:])
    yield BlockKind.END, pack(_plain(trace, _END, rows=["probe_costs"]))


def _plain(trace: EngineTrace, names: Sequence[str], rows: Sequence[str] = ()) -> dict[str, Any]:
    plain: dict[str, Any] = to_plain({name: getattr(trace, name) for name in names}, rows=rows)
    return plain


def _rows(kind: BlockKind, rows: npt.NDArray[Any]) -> Iterator[tuple[BlockKind, bytes]]:
    if rows.size:
        yield kind, rows.tobytes()


def _plain_graphs(graphs: Iterable[Sequence[Node]]) -> dict[str, Any]:
    """Return graphs as plain values, each tensor once."""
    places: dict[Tensor, int] = {}

    def place(tensor: Tensor) -> int:
        return places.setdefault(tensor, len(places))

    plain = [
        [[place(node.tensor), node.op, [place(each) for each in node.sources], node.fused_op] for node in graph]
        for graph in graphs
    ]
    return {"tensors": [[each.name, each.type, each.ne, each.nb, each.root] for each in places], "graphs": plain}


def _graphs_from_plain(plain: Mapping[str, Any]) -> _Graphs:
    tensors = [from_row(row, Tensor) for row in plain["tensors"]]
    return tuple(
        tuple(
            Node(tensor=tensors[tensor], op=op, sources=tuple(tensors[each] for each in sources), fused_op=fused_op)
            for tensor, op, sources, fused_op in graph
        )
        for graph in plain["graphs"]
    )


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


def read_blocks(content: bytes) -> Iterator[tuple[BlockKind, memoryview] | str]:
    """Yield the blocks behind the magic whose checksums hold, and at last where they break off, if they do."""
    at, whole = len(MAGIC), memoryview(content)
    while at < len(content):
        fault, begin = f"cut at byte {at},", at + HEAD.size
        if begin <= len(content):
            kind, checksum, n_bytes = HEAD.unpack_from(content, at)
            payload = whole[begin : begin + n_bytes]
            if kind not in set(BlockKind):
                fault = f"damaged at byte {at}: a block of kind {kind!r},"
            elif len(payload) < n_bytes:
                fault = f"cut at byte {at}, in a block of {n_bytes} bytes;"
            elif _checksum(kind, payload) != checksum:
                fault = f"damaged at byte {at}: the checksum of {n_bytes} bytes does not hold,"
            else:
                yield BlockKind(kind), payload
                at = begin + n_bytes
                continue
        yield f"{fault} {len(content) - at} bytes are left over"
        return


class _Content:
    def __init__(self, path: Path, content: bytes) -> None:
        self._path = path
        self._facts: dict[str, Any] = {}
        self._graphs: _Graphs = ()
        self._arrays: dict[BlockKind, list[memoryview]] = {}
        self._cut: str | None = f"ends at byte {len(content)} without an end: its writer was killed, or still writes"
        for block in read_blocks(content):
            if isinstance(block, str):
                self._cut = block
            else:
                self._take(*block)

    def trace(self) -> EngineTrace:
        if "fields" not in self._facts:
            raise MeasurementError(f"{self._path}: {self._cut}; nothing can be read")
        if self._cut:
            self._facts["cut"] = f"{self._path.name}: {self._cut}"
        plain = {**dict.fromkeys(("threads", "probe_costs"), ()), **self._facts}
        try:
            facts = rebuilt(plain, TraceFacts, threads=TracedThread, probe_costs=ProbeCost)
        except ValueError as error:
            raise MeasurementError(f"{self._path}: damaged: this suite cannot read it ({error})") from error
        names = facts.counter_names
        counters = self._rows(BlockKind.COUNTERS, np.dtype("<i8"), max(1, len(names))).reshape(-1, max(1, len(names)))
        return EngineTrace(
            **{name: getattr(facts, name) for name in TraceFacts.__slots__},
            events=self._events(facts, len(counters)),
            graphs=self._graphs,
            counters=counters[:, : len(names)],
            experts=self._rows(BlockKind.EXPERTS, EXPERT_DTYPE),
        )

    def _take(self, kind: BlockKind, payload: memoryview) -> None:
        try:
            match kind:
                case BlockKind.HEADER | BlockKind.END:
                    self._facts |= unpack(payload)
                    if kind is BlockKind.END:
                        self._cut = None
                    elif self._facts["fields"] != _FIELDS:
                        seen = self._facts["fields"]
                        raise MeasurementError(
                            f"{self._path}: its events have the fields {seen}; this suite reads {_FIELDS}"
                        )
                case BlockKind.TABLES:
                    for name, rows in unpack(payload).items():
                        self._facts[name] = [*self._facts.get(name, ()), *rows]
                case BlockKind.GRAPHS:
                    self._graphs += _graphs_from_plain(unpack(payload))
                case _:
                    self._arrays.setdefault(kind, []).append(payload)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            what = f"{kind.name.lower()} ({type(error).__name__}: {error})"
            raise MeasurementError(f"{self._path}: damaged: this suite cannot read its {what}") from error

    def _rows(self, kind: BlockKind, dtype: np.dtype[Any], columns: int = 1) -> npt.NDArray[Any]:
        size, payloads = dtype.itemsize * columns, self._arrays.get(kind, [])
        wrong = next((len(payload) for payload in payloads if len(payload) % size), None)
        if wrong is not None:
            raise MeasurementError(f"{self._path}: {wrong} bytes of {kind.name.lower()}, expected a multiple of {size}")
        return np.concatenate([np.empty(0, dtype), *(np.frombuffer(payload, dtype) for payload in payloads)])

    def _events(self, facts: TraceFacts, n_counters: int) -> Events:
        """Return the events; what they refer to and is not there, for the file was cut, is NOTHING."""
        events = self._rows(BlockKind.EVENTS, EVENT_DTYPE)
        for field, n_known in (("thread", len(facts.threads)), ("graph", len(self._graphs)), ("counters", n_counters)):
            events[field][events[field] >= n_known] = NOTHING
        kinds = {EventKind.GRAPH: facts.backends, EventKind.KERNEL: facts.kernels, EventKind.PHASE: facts.phases}
        for kind, names in kinds.items():
            events["value"][(events["kind"] == kind) & (events["value"] >= len(names))] = NOTHING
        return events
