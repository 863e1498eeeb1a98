"""Reads the log that the eBPF recorder writes; ``native/include/perfsuite/bpf_log.h`` lays it out."""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from perfsuite.errors import MeasurementError
from perfsuite.records.engine_trace import NOTHING

#: The part that all records have, ``ps_bpf_record``.
RECORD_DTYPE = np.dtype(
    [
        ("kind", "=u2"),
        ("bytes", "=u2"),
        ("tid", "=u4"),
        ("ns", "=i8"),
        ("subject", "=u8"),
        ("value", "=i8"),
        ("cpu", "=u2"),
        ("flags", "=u2"),
        ("reserved", "=u4"),
    ]
)

Records = npt.NDArray[np.void]
Positions = npt.NDArray[np.intp]


class BpfKind(IntEnum):
    """What a record holds, as ``ps_bpf_kind``."""

    TOKEN_BEGIN = 1
    TOKEN_END = 2
    GRAPH_BEGIN = 3
    GRAPH_END = 4
    STRUCTURE = 5
    OPERATOR_BEGIN = 6
    BARRIER = 7
    SWITCH_OUT = 8
    SWITCH_IN = 9
    WOKEN = 10
    EXPERT_IDS = 11
    LEVELS = 12
    LOST = 13
    THREAD_NAME = 14
    PROBE = 15
    END = 16


class BpfFlag(IntFlag):
    """Flags of `OPERATOR_BEGIN` and `BARRIER`."""

    FUSED = 1
    HAS_COUNTERS = 2
    MULTIPLEXED = 4


class LevelsReason(IntEnum):
    """Flags of `LEVELS`: why they were switched."""

    TOLD = 1
    BELOW_FLOOR = 2
    RECOVERED = 3


class EndReason(IntEnum):
    """Value of `END`: why the recorder stopped."""

    TOLD = 1
    WITH_TARGET = 2
    #: It could not write any more.
    OUTPUT = 3


class BufferKind(IntEnum):
    """How events came from the kernel."""

    RING = 0
    PERF = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BpfLog:
    """A log that was read as far as it is whole."""

    path: Path
    pid: int
    #: Everything asked for is attached from here on.
    start_ns: int
    #: Bits of `TraceLevel`, at the start.
    levels: int
    buffer: BufferKind
    #: Size of a raw tensor in `STRUCTURE` records.
    tensor_bytes: int
    n_cpus: int
    counter_names: tuple[str, ...]
    #: `RECORD_DTYPE`, in the order of the file.
    records: Records
    offsets: npt.NDArray[np.int64]
    content: bytes
    #: Where and why the log breaks off before its end; None where it is whole.
    cut: str | None

    def positions(self, *kinds: BpfKind) -> Positions:
        """Return where the records of some kinds are, in the order of the file."""
        return np.flatnonzero(np.isin(self.records["kind"], kinds))

    def tail(self, position: int) -> memoryview:
        """Return what follows the common part of a record."""
        begin = int(self.offsets[position])
        end = begin + int(self.records["bytes"][position])
        return memoryview(self.content)[begin + RECORD_DTYPE.itemsize : end]

    def counters(self, positions: Positions) -> npt.NDArray[np.int64]:
        """Return what records have counted, one row each; NOTHING in rows that have no counters."""
        n_counters = len(self.counter_names)
        rows = np.full((positions.size, n_counters), NOTHING, np.int64)
        has = (self.records["flags"][positions] & BpfFlag.HAS_COUNTERS) != 0
        first = (self.offsets[positions[has]] + RECORD_DTYPE.itemsize) // 8
        words = np.frombuffer(self.content, np.int64, len(self.content) // 8)
        rows[has] = words[first[:, np.newaxis] + np.arange(n_counters)]
        return rows


MAGIC = b"PSBPFLOG"
VERSION = 1
#: Magic, version, header_bytes, start_ns, pid, levels, buffer, tensor_bytes, n_cpus, n_counters; then counters' names.
HEADER = struct.Struct("=8sIIqiIIIII")
MAX_COUNTERS, COUNTER_NAME_BYTES = 8, 32
HEADER_BYTES = HEADER.size + MAX_COUNTERS * COUNTER_NAME_BYTES
MAX_TENSOR_BYTES, MAX_SOURCES = 512, 5
#: What follows the common part of a PROBE: how often it ran, and its name.
PROBE_TAIL = struct.Struct("=Q32s")
#: What follows the common part of EXPERT_IDS: the first token, and how many ids come.
EXPERTS_TAIL = struct.Struct("=ii")
GUID_BYTES, THREAD_NAME_BYTES = 16, 16

_TAIL_BYTES = {
    BpfKind.GRAPH_BEGIN: GUID_BYTES,
    BpfKind.EXPERT_IDS: EXPERTS_TAIL.size,
    BpfKind.THREAD_NAME: THREAD_NAME_BYTES,
    BpfKind.PROBE: PROBE_TAIL.size,
}

_Offsets = npt.NDArray[np.int64]


def read_bpf_log(path: Path) -> BpfLog:
    """Read a log as far as it is whole; `BpfLog.cut` says where that is, and why, if it is not to its end.

    Raises MeasurementError: the file cannot be read, is no such log, or is of another version; the message says what
    was seen.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise MeasurementError(f"{path}: cannot be read ({error.strerror})") from error
    header_bytes, fields = _header(path, content)
    offsets, rest = _walk(content, header_bytes)
    records = _gathered(content, offsets)
    wrong = np.flatnonzero(_is_wrong(records, offsets, content, fields["tensor_bytes"], len(fields["counter_names"])))
    if wrong.size:
        at, record = int(offsets[wrong[0]]), records[wrong[0]]
        rest = f"damaged at byte {at}: a record of kind {record['kind']} with {record['bytes']} bytes"
        offsets, records = offsets[: wrong[0]], records[: wrong[0]]
    cut = _cut(records, offsets, rest, header_bytes, len(content))
    return BpfLog(path=path, **fields, records=records, offsets=offsets, content=content, cut=cut)


def _header(path: Path, content: bytes) -> tuple[int, dict[str, Any]]:
    """Return how long the header is, and what it says under the names of `BpfLog`."""
    if len(content) < HEADER_BYTES:
        raise MeasurementError(
            f"{path}: {len(content)} bytes; expected a log of the eBPF recorder, {HEADER_BYTES} bytes or more"
        )
    magic, version, header_bytes, start_ns, pid, levels, buffer, tensor_bytes, n_cpus, n_counters = HEADER.unpack_from(
        content
    )
    if magic != MAGIC:
        raise MeasurementError(f"{path}: begins with {magic!r}, a log of the eBPF recorder with {MAGIC!r}")
    _check(path, "version", version, version == VERSION, str(VERSION))
    is_length = HEADER_BYTES <= header_bytes <= len(content) and header_bytes % 8 == 0
    _check(path, "header_bytes", header_bytes, is_length, f"a multiple of 8 from {HEADER_BYTES} on, within the file")
    is_tensor = tensor_bytes <= MAX_TENSOR_BYTES and tensor_bytes % 8 == 0
    _check(path, "tensor_bytes", tensor_bytes, is_tensor, f"a multiple of 8, {MAX_TENSOR_BYTES} at most")
    _check(path, "n_counters", n_counters, n_counters <= MAX_COUNTERS, f"{MAX_COUNTERS} at most")
    _check(path, "buffer", buffer, buffer in set(BufferKind), "0 (ring) or 1 (perf)")
    begins = range(HEADER.size, HEADER.size + n_counters * COUNTER_NAME_BYTES, COUNTER_NAME_BYTES)
    return header_bytes, {
        "start_ns": start_ns,
        "pid": pid,
        "levels": levels,
        "buffer": BufferKind(buffer),
        "tensor_bytes": tensor_bytes,
        "n_cpus": n_cpus,
        "counter_names": tuple(terminated(content[begin : begin + COUNTER_NAME_BYTES]) for begin in begins),
    }


def _check(path: Path, field: str, seen: int, is_right: bool, expected: str) -> None:
    if not is_right:
        raise MeasurementError(f"{path}: {field} of the eBPF recorder's log is {seen}; expected {expected}")


def terminated(text: bytes | memoryview) -> str:
    """Return a text up to its NUL."""
    return bytes(text).partition(b"\0")[0].decode(errors="replace")


def _walk(content: bytes, begin: int) -> tuple[_Offsets, str]:
    """Find where the records begin, one after the other; say why the last one found is the last."""
    halves = memoryview(content)[: len(content) // 8 * 8].cast("H")
    found = array("q")
    at, n_bytes, least = begin, len(content), RECORD_DTYPE.itemsize
    rest = ""
    while at + least <= n_bytes:
        size = halves[(at >> 1) + 1]
        if size < least or size & 7:
            rest = f"damaged at byte {at}: a record of kind {halves[at >> 1]} with {size} bytes"
            break
        if at + size > n_bytes:
            break
        found.append(at)
        at += size
    if not rest and at < n_bytes:
        rest = f"cut at byte {at}, in the middle of a record"
    return np.array(found, np.int64), rest


def _gathered(content: bytes, offsets: _Offsets) -> Records:
    n_words = RECORD_DTYPE.itemsize // 8
    words = np.frombuffer(content, np.uint64, len(content) // 8)
    found: Records = words[(offsets // 8)[:, np.newaxis] + np.arange(n_words)].view(RECORD_DTYPE).reshape(-1)
    return found


def _is_wrong(
    records: Records, offsets: _Offsets, content: bytes, tensor_bytes: int, n_counters: int
) -> npt.NDArray[np.bool_]:
    """Mark the records that cannot be: kinds that are not known, and lengths that their kind has not."""
    kinds, tail_bytes = records["kind"], records["bytes"].astype(np.int64) - RECORD_DTYPE.itemsize
    wrong = (kinds < min(BpfKind)) | (kinds > max(BpfKind)) | (records["ns"] < 0)
    for kind, least in _TAIL_BYTES.items():
        wrong |= (kinds == kind) & (tail_bytes < least)
    has_counters = np.isin(kinds, (BpfKind.OPERATOR_BEGIN, BpfKind.BARRIER)) & (
        (records["flags"] & BpfFlag.HAS_COUNTERS) != 0
    )
    wrong |= has_counters & (tail_bytes < 8 * n_counters)
    is_structure = kinds == BpfKind.STRUCTURE
    tensors, left = np.divmod(tail_bytes, max(tensor_bytes, 1))
    wrong |= is_structure & ((left != 0) | (tensors < 1) | (tensors > 1 + MAX_SOURCES) | (tensor_bytes == 0))
    for position in np.flatnonzero((kinds == BpfKind.EXPERT_IDS) & ~wrong):
        _, n_ids = EXPERTS_TAIL.unpack_from(content, offsets[position] + RECORD_DTYPE.itemsize)
        wrong[position] = not 0 <= n_ids * 4 <= tail_bytes[position] - EXPERTS_TAIL.size
    return wrong


def _cut(records: Records, offsets: _Offsets, rest: str, begin: int, n_bytes: int) -> str | None:
    """Say where the log breaks off; None where it ends in order."""
    end_bytes = int(offsets[-1]) + int(records["bytes"][-1]) if offsets.size else begin
    ends = np.flatnonzero(records["kind"] == BpfKind.END)
    if ends.size:
        if records["value"][ends[-1]] == EndReason.OUTPUT:
            return f"the recorder could not write beyond byte {end_bytes}"
        return f"{rest}; {n_bytes - end_bytes} bytes behind its end" if rest else None
    if rest:
        return f"{rest}; {n_bytes - end_bytes} bytes are left over"
    return f"no end record after byte {n_bytes}: the recorder was killed, the disk is full, or it still records"
