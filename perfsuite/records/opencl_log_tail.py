"""Follows the log of the OpenCL layer while its process writes it; the layout is ``perfsuite/cl_log.h``'s."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfsuite.errors import MeasurementError
from perfsuite.records.live import LiveKernel
from perfsuite.records.opencl_commands import CommandFlag, Commands, CommandType
from perfsuite.records.opencl_log_file import HEADER, LogContent, LogRecord, RecordKind


@dataclass(frozen=True, slots=True, kw_only=True)
class TailedRecords:
    """What was appended since the last look."""

    #: The program's kernels, without the layer's duplicates.
    kernels: tuple[LiveKernel, ...]
    #: Commands that the layer says it lost.
    n_lost: int


class OpenClLogTail:
    """Reads what is appended to one log; a record that is only half there waits for the next look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        #: The header, and what is not whole yet.
        self._unread = b""
        self._names: dict[int, str] = {}
        self._device_of_queue: dict[int, int] = {}
        #: Host time less device time by device, ns, at the latest reading of its clock.
        self._shift_ns: dict[int, int] = {}

    def read(self, limit_bytes: int = -1) -> TailedRecords:
        """Read at most `limit_bytes` more, or all where that is negative; a log that is not there yet has nothing.

        Raises MeasurementError: the file is no such log, or cannot be read.
        """
        self._unread += self._appended(limit_bytes)
        log = LogContent(path=self._path, content=self._unread)
        if len(self._unread) < HEADER.size:
            return TailedRecords(kernels=(), n_lost=0)
        _, first = log.header()
        records = log.records()
        n_lost = sum(log.fields(each)[2] for each in records.others if each.kind == RecordKind.LOSS)
        for record in records.others:
            self._learn(log, record)
        self._unread = self._unread[:first] + self._unread[records.end :]
        return TailedRecords(kernels=tuple(self._kernels(log.commands(records.commands))), n_lost=n_lost)

    def _appended(self, limit_bytes: int) -> bytes:
        try:
            with self._path.open("rb") as log:
                log.seek(self._offset)
                content = log.read(limit_bytes)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise MeasurementError(f"{self._path}: cannot be read ({error.strerror})") from error
        self._offset += len(content)
        return content

    def _learn(self, log: LogContent, record: LogRecord) -> None:
        if record.kind == RecordKind.NAME:
            name, text = log.text(record)
            self._names[name] = text
        elif record.kind == RecordKind.QUEUE:
            queue, _, device, _ = log.fields(record)
            self._device_of_queue[queue] = device
        elif record.kind == RecordKind.CLOCK:
            device, _, device_ns, before_ns, after_ns = log.fields(record)
            self._shift_ns[device] = (before_ns + after_ns) // 2 - device_ns

    def _kernels(self, commands: Commands) -> Iterator[LiveKernel]:
        is_kernel = commands["type"] == CommandType.KERNEL
        is_replayed = (commands["flags"] & CommandFlag.REPLAYED) != 0
        chosen = commands[is_kernel & ~is_replayed]
        names = ("sequence", "name", "queue", "flags", "host_start_ns", "queued_ns", "submit_ns", "start_ns", "end_ns")
        for row in zip(*(chosen[name].tolist() for name in names), strict=True):
            yield self._kernel(row)

    def _kernel(self, row: Sequence[int]) -> LiveKernel:
        sequence, name, queue, flags, enqueue_ns, *times_ns = row
        shift_ns = self._shift_ns.get(self._device_of_queue.get(queue, 0))
        is_timed = shift_ns is not None and not flags & CommandFlag.NO_PROFILE
        on_host_ns = (time_ns + (shift_ns or 0) if is_timed and time_ns else None for time_ns in times_ns)
        stamps = dict(zip(("queued_ns", "submit_ns", "start_ns", "end_ns"), on_host_ns, strict=True))
        kernel = self._names.get(name, "")
        return LiveKernel(sequence=sequence, name=kernel, queue=queue, enqueue_ns=enqueue_ns, **stamps)
