"""Writes a trace's file from the front to the back, so that it can be read at any time.

The blocks that a trace's file is made of: each with its kind, its length and a checksum, one behind the other.

The file begins with `MAGIC`; a block is its head and its payload. Nothing that was written is written again, so that a
file is good up to the end of its last whole block, whoever was killed while writing it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from perfsuite.errors import MeasurementError
from perfsuite.records.codec import pack, rebuilt, to_plain
from perfsuite.records.engine_trace import (
    EVENT_DTYPE,
    EXPERT_DTYPE,
    Events,
    Experts,
    ProbeCost,
    TracedThread,
    TraceRecorder,
)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block whose checksum holds."""

    kind: BlockKind
    payload: memoryview


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCut:
    """Where the blocks break off, in words."""

    text: str


def block_head(kind: BlockKind, payload: bytes | memoryview) -> bytes:
    """Return what is written in front of a payload."""
    return HEAD.pack(kind.value, _checksum(kind.value, payload), memoryview(payload).nbytes)


def read_blocks(content: bytes) -> Iterator[Block | BlockCut]:
    """Yield the blocks behind the magic, and a last `BlockCut` where something else follows them."""
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
                yield Block(kind=BlockKind(kind), payload=payload)
                at = begin + n_bytes
                continue
        yield BlockCut(text=f"{fault} {len(content) - at} bytes are left over")
        return


def _checksum(kind: bytes, payload: bytes | memoryview) -> int:
    return zlib.crc32(payload, zlib.crc32(kind))


class TraceWriter:
    """Writes a trace block by block; the file can be read at any time, up to its last whole block.

    Raises MeasurementError: the file is there already and may not be replaced, or cannot be written; so do all methods.
    """

    def __init__(self, path: Path, header: TraceHeader, *, overwrites: bool = False) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._out = path.open("wb" if overwrites else "xb", buffering=0)
        except FileExistsError:
            raise MeasurementError(f"{path}: already exists; name another file, or remove it") from None
        except OSError as error:
            raise MeasurementError(f"{path}: cannot be written ({error.strerror})") from error
        self._put(MAGIC)
        self._block(BlockKind.HEADER, pack({"fields": FIELDS, **to_plain(header)}))

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def tables(self, tables: TraceTables) -> None:
        """Add to what events refer to."""
        self._block(BlockKind.TABLES, pack(to_plain(tables, rows=["threads"])))

    def graphs(self, graphs: Graphs) -> None:
        """Add graphs behind those that are there."""
        self._block(BlockKind.GRAPHS, pack(plain_graphs(graphs)))

    def events(self, events: Events) -> None:
        """Add events."""
        self._array(BlockKind.EVENTS, events)

    def counters(self, rows: npt.NDArray[np.int64]) -> None:
        """Add rows of counters; those that an event refers to come before it."""
        self._array(BlockKind.COUNTERS, rows.astype("<i8", copy=False))

    def experts(self, experts: Experts) -> None:
        """Add chosen experts."""
        self._array(BlockKind.EXPERTS, experts)

    def end(self, end: TraceEnd) -> None:
        """Say that the trace is whole."""
        self._block(BlockKind.END, pack(to_plain(end, rows=["probe_costs"])))

    def close(self) -> None:
        """Close the file; without an `end` before, it reads as cut."""
        self._out.close()

    def _array(self, kind: BlockKind, rows: npt.NDArray[Any]) -> None:
        if rows.size:
            self._block(kind, np.ascontiguousarray(rows).view(np.uint8).reshape(-1).data)

    def _block(self, kind: BlockKind, payload: bytes | memoryview) -> None:
        self._put(block_head(kind, payload))
        self._put(payload)

    def _put(self, content: bytes | memoryview) -> None:
        rest = memoryview(content)
        try:
            while rest.nbytes:
                rest = rest[self._out.write(rest) :]
        except OSError as error:
            self.close()
            raise MeasurementError(
                f"{self._path}: cannot be written ({error.strerror}); what is there can be read up to its cut"
            ) from error
