"""Reads the log that the OpenCL layer writes; ``native/include/perfsuite/cl_log.h`` lays it out."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

import numpy as np

from perfsuite.errors import MeasurementError
from perfsuite.records.opencl_commands import (
    COMMAND_DTYPE,
    ClockPoint,
    ClockSource,
    CommandFlag,
    Commands,
    CommandType,
    OpenClTrace,
    TracedDevice,
    TracedQueue,
)

MAGIC = b"PSCLLOG1"
HEADER = struct.Struct("<8sIIq")
PREFIX = struct.Struct("<II")

#: No record is longer; a length beyond it is damage, not the end of a file that was cut.
LONGEST_BYTES = 1 << 20


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


class LogRecord(NamedTuple):
    """Where a record is, prefix included."""

    kind: int
    offset: int
    n_bytes: int


class LogRecords(NamedTuple):
    """The whole records of a log."""

    #: Where commands are.
    commands: list[int]
    others: list[LogRecord]
    #: Where what is not whole begins.
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogContent:
    """A log as bytes."""

    path: Path
    content: bytes

    def records(self) -> LogRecords:
        """Find the records that are whole."""
        commands, others = list[int](), list[LogRecord]()
        _, offset = self.header()
        size, prefix, command = len(self.content), PREFIX.size, int(RecordKind.COMMAND)
        words = memoryview(self.content)[: size // 4 * 4].cast("I")
        while offset + prefix <= size:
            kind, n_bytes = words[offset >> 2], words[(offset >> 2) + 1]
            if kind == n_bytes == 0 and self.content.count(0, offset) == size - offset:
                break  # space that the system had set aside when the machine went down
            if n_bytes < LEAST_BYTES.get(kind, prefix) or n_bytes & 7 or n_bytes > LONGEST_BYTES:
                raise self.damaged(offset, f"a record of kind {kind} with {n_bytes} bytes")
            if offset + n_bytes > size:
                break
            if kind == command:
                commands.append(offset)
            else:
                others.append(LogRecord(kind, offset, n_bytes))
            offset += n_bytes
        return LogRecords(commands, others, offset)

    def commands(self, offsets: Sequence[int]) -> Commands:
        """Return commands by where their records are."""
        n_words = COMMAND_DTYPE.itemsize // 8
        words = np.frombuffer(self.content, np.uint64, len(self.content) // 8)
        first = (np.array(offsets, np.int64) + PREFIX.size) // 8
        found: Commands = words[first[:, np.newaxis] + np.arange(n_words)].view(COMMAND_DTYPE).reshape(-1)
        return found

    def fields(self, record: LogRecord) -> tuple[int, ...]:
        return CONTENT[RecordKind(record.kind)].unpack_from(self.content, record.offset + PREFIX.size)

    def text(self, record: LogRecord) -> tuple[int, str]:
        """Return the id and the text of a `NAME` or `DEVICE`."""
        number, length = self.fields(record)
        begin = record.offset + LEAST_BYTES[record.kind]
        if begin + length > record.offset + record.n_bytes:
            raise self.damaged(record.offset, f"a text of {length} bytes in a record of {record.n_bytes}")
        return number, self.content[begin : begin + length].decode("utf-8", "replace")

    def damaged(self, offset: int, what: str) -> MeasurementError:
        return MeasurementError(f"{self.path}: damaged at byte {offset}: {what}")

    def header(self) -> tuple[int, int]:
        """Check the header; return the process that wrote it, and where the records begin."""
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


_OUT_OF_ORDER = 1
_CALLER_PROFILES = 2


def read_opencl_log(path: Path) -> OpenClTrace:
    """Read one process's log whole.

    Of a process that was killed, or that still runs, the log is read as far as it is whole, with `n_unfinished` `None`.

    Raises MeasurementError: the file cannot be read, is no such log, or contradicts itself; the message names the
    place.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise MeasurementError(f"{path}: cannot be read ({error.strerror})") from error
    return _Contents(LogContent(path=path, content=content)).trace()


class _Contents:
    def __init__(self, log: LogContent) -> None:
        self._log = log
        self._names: dict[int, str] = {}
        self._devices: dict[int, str] = {}
        self._queues: dict[int, TracedQueue] = {}
        self._clock_points: list[ClockPoint] = []
        self._n_lost = 0
        self._end: tuple[int, ...] | None = None

    def trace(self) -> OpenClTrace:
        records = self._log.records()
        for record in records.others:
            self._take(record)
        commands = self._log.commands(records.commands)
        self._check_references(commands)
        is_replayed = (commands["flags"] & CommandFlag.REPLAYED) != 0
        own = _sorted(commands[~is_replayed], "sequence")
        self._check_counts(own)
        return OpenClTrace(
            pid=self._log.header()[0],
            commands=own,
            replayed=_sorted(commands[is_replayed], "host_start_ns"),
            names=("", *self._texts(self._names, "name")),
            devices=tuple(self._device(text) for text in self._texts(self._devices, "device")),
            queues=tuple(self._queues[queue] for queue in sorted(self._queues)),
            clock_points=tuple(self._clock_points),
            n_lost=self._n_lost if self._end is None else self._end[2],
            n_unfinished=None if self._end is None else self._end[3],
            ended_ns=None if self._end is None else self._end[4],
        )

    def _take(self, record: LogRecord) -> None:
        match record.kind:
            case RecordKind.NAME | RecordKind.DEVICE:
                number, text = self._log.text(record)
                (self._names if record.kind == RecordKind.NAME else self._devices)[number] = text
            case RecordKind.QUEUE:
                queue, context, device, flags = self._log.fields(record)
                self._queues[queue] = TracedQueue(
                    queue=queue,
                    context=context,
                    device=device - 1,
                    is_out_of_order=bool(flags & _OUT_OF_ORDER),
                    caller_profiles=bool(flags & _CALLER_PROFILES),
                )
            case RecordKind.CLOCK:
                self._take_clock(record.offset, *self._log.fields(record))
            case RecordKind.LOSS:
                self._n_lost += self._log.fields(record)[2]
            case RecordKind.END:
                self._end = self._log.fields(record)

    def _take_clock(self, offset: int, device: int, source: int, device_ns: int, before_ns: int, after_ns: int) -> None:
        if source not in set(ClockSource) or after_ns < before_ns:
            raise self._log.damaged(offset, f"a clock reading of source {source} from {before_ns} to {after_ns} ns")
        point = ClockPoint(
            device=device - 1,
            source=ClockSource(source),
            device_ns=device_ns,
            host_before_ns=before_ns,
            host_after_ns=after_ns,
        )
        self._clock_points.append(point)

    def _texts(self, texts: dict[int, str], what: str) -> list[str]:
        if sorted(texts) != list(range(1, len(texts) + 1)):
            raise MeasurementError(f"{self._log.path}: damaged: the ids of its {what}s are not 1 to {len(texts)}")
        return [texts[number] for number in sorted(texts)]

    def _device(self, text: str) -> TracedDevice:
        platform_name, device_name, driver_version, resolution_ns, *_ = [*text.split("\t"), "", "", ""]
        return TracedDevice(
            platform_name=platform_name,
            device_name=device_name,
            driver_version=driver_version,
            timer_resolution_ns=int(resolution_ns) if resolution_ns.isdecimal() else None,
        )

    def _check_references(self, commands: Commands) -> None:
        known = {"queue": set(self._queues), "name": {0, *self._names}, "type": set(map(int, CommandType))}
        for field, ids in known.items():
            for unknown in set(np.unique(commands[field]).tolist()) - ids:
                raise MeasurementError(
                    f"{self._log.path}: damaged: a command has {field} {unknown}, which is not in the file"
                )
        if (commands["host_end_ns"] < commands["host_start_ns"]).any():
            raise MeasurementError(f"{self._log.path}: damaged: the enqueue call of a command ended before it began")
        devices = {each.device for each in self._queues.values()} | {each.device for each in self._clock_points}
        for device in devices - {number - 1 for number in self._devices}:
            raise MeasurementError(f"{self._log.path}: damaged: device {device + 1} is used, which is not in the file")

    def _check_counts(self, commands: Commands) -> None:
        """Raise where a command is there twice, or where others are there than the end of the file counts."""
        twice = np.flatnonzero(np.diff(commands["sequence"].astype(np.int64)) == 0)
        if twice.size:
            number = commands["sequence"][twice[0]]
            raise MeasurementError(f"{self._log.path}: damaged: command {number} is there more than once")
        if self._end is None:
            return
        n_commands, n_recorded, n_lost, n_unfinished, _ = self._end
        if n_recorded != commands.size or n_commands != n_recorded + n_lost + n_unfinished:
            raise MeasurementError(
                f"{self._log.path}: damaged: {commands.size} commands are there; its end counts {n_recorded} recorded, "
                f"{n_lost} lost and {n_unfinished} unfinished of {n_commands}"
            )


def _sorted(commands: Commands, field: str) -> Commands:
    return commands[np.argsort(commands[field], kind="stable")]
