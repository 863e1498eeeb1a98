"""The records of the OpenCL layer's log, found one after the other, all commands that follow each other at once."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np

from perfsuite.errors import MeasurementError
from perfsuite.records.opencl_commands import COMMAND_DTYPE, Commands

MAGIC = b"PSCLLOG1"
HEADER = struct.Struct("<8sIIq")
PREFIX = struct.Struct("<II")

#: No record is longer; a length beyond it is damage, not the end of a file that was cut.
LONGEST_BYTES = 1 << 20
#: Commands that are looked at together at first; each further look takes twice as many.
_FIRST_LOOK = 256


class RecordKind(IntEnum):
    """What a record holds, as ``ps_cl_record_kind`` of ``native/include/perfsuite/cl_log.h``."""

    NAME = 1
    DEVICE = 2
    QUEUE = 3
    CLOCK = 4
    COMMAND = 5
    LOSS = 6
    END = 7


#: What follows the prefix, but for commands: `COMMAND_DTYPE`.
CONTENT = {
    RecordKind.NAME: struct.Struct("<II"),
    RecordKind.DEVICE: struct.Struct("<II"),
    RecordKind.QUEUE: struct.Struct("<IIII"),
    RecordKind.CLOCK: struct.Struct("<IIqqq"),
    RecordKind.LOSS: struct.Struct("<IIQ"),
    RecordKind.END: struct.Struct("<QQQQq"),
}

LEAST_BYTES: dict[int, int] = {
    **{kind: PREFIX.size + content.size for kind, content in CONTENT.items()},
    RecordKind.COMMAND: PREFIX.size + COMMAND_DTYPE.itemsize,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRun:
    """Records of one kind and length that follow each other; more than one of commands only."""

    kind: int
    #: Where the first of them begins, prefix included.
    offset: int
    record_bytes: int
    n_records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogContent:
    """A log as bytes."""

    path: Path
    content: bytes

    def pid(self) -> int:
        """Check the header; return the process that wrote it."""
        return self._header()[0]

    def runs(self) -> Iterator[RecordRun]:
        """Yield the records that are whole."""
        offset = self._header()[1]
        while offset + PREFIX.size <= len(self.content):
            kind, record_bytes = PREFIX.unpack_from(self.content, offset)
            if kind == record_bytes == 0 and self.content.count(0, offset) == len(self.content) - offset:
                return  # space that the system had set aside when the machine went down
            if record_bytes < LEAST_BYTES.get(kind, PREFIX.size) or record_bytes % 8 or record_bytes > LONGEST_BYTES:
                raise self.damaged(offset, f"a record of kind {kind} with {record_bytes} bytes")
            if offset + record_bytes > len(self.content):
                return
            n_records = self._n_alike(offset, kind, record_bytes) if kind == RecordKind.COMMAND else 1
            yield RecordRun(kind=kind, offset=offset, record_bytes=record_bytes, n_records=n_records)
            offset += n_records * record_bytes

    def commands(self, run: RecordRun) -> Commands:
        """Return the commands of a run as they lie in the file."""
        begin, strides = run.offset + PREFIX.size, (run.record_bytes,)
        return np.ndarray((run.n_records,), COMMAND_DTYPE, self.content, begin, strides)

    def fields(self, run: RecordRun) -> tuple[int, ...]:
        """Return the fields of a record that is no command."""
        return CONTENT[RecordKind(run.kind)].unpack_from(self.content, run.offset + PREFIX.size)

    def text(self, run: RecordRun) -> tuple[int, str]:
        """Return the id and the text of a `NAME` or `DEVICE`."""
        number, length = self.fields(run)
        begin = run.offset + LEAST_BYTES[run.kind]
        if begin + length > run.offset + run.record_bytes:
            raise self.damaged(run.offset, f"a text of {length} bytes in a record of {run.record_bytes}")
        return number, self.content[begin : begin + length].decode("utf-8", "replace")

    def damaged(self, offset: int, what: str) -> MeasurementError:
        """Return the error for what cannot stand in a log."""
        return MeasurementError(f"{self.path}: damaged at byte {offset}: {what}")

    def _header(self) -> tuple[int, int]:
        """Return the process and where the records begin."""
        if len(self.content) < HEADER.size:
            raise MeasurementError(
                f"{self.path}: {len(self.content)} bytes; expected a log of the OpenCL layer, {HEADER.size} or more"
            )
        magic, header_bytes, pid, _ = HEADER.unpack_from(self.content)
        if magic != MAGIC:
            raise MeasurementError(f"{self.path}: begins with {magic!r}, a log of the OpenCL layer with {MAGIC!r}")
        if header_bytes < HEADER.size or header_bytes % 8:
            raise self.damaged(8, f"a header of {header_bytes} bytes, expected {HEADER.size} or more")
        return pid, header_bytes

    def _n_alike(self, offset: int, kind: int, record_bytes: int) -> int:
        """Count the whole records from `offset` on that have this kind and length."""
        n_whole = (len(self.content) - offset) // record_bytes
        first, look = 1, _FIRST_LOOK
        while first < n_whole:
            n_seen = min(look, n_whole - first)
            prefixes = np.ndarray((n_seen, 2), "<u4", self.content, offset + first * record_bytes, (record_bytes, 4))
            others = np.flatnonzero((prefixes != (kind, record_bytes)).any(axis=1))
            if others.size:
                return first + int(others[0])
            first, look = first + n_seen, look * 2
        return n_whole
