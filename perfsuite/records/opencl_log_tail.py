"""Follows the log of the OpenCL layer while its process writes it; the layout is ``perfsuite/cl_log.h``'s."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perfsuite.errors import MeasurementError
from perfsuite.records.live import LiveKernel
from perfsuite.records.opencl_commands import COMMAND_DTYPE, CommandFlag, Commands, CommandType
from perfsuite.records.opencl_log_file import CONTENT, HEADER, LEAST_BYTES, LONGEST_BYTES, MAGIC, PREFIX, RecordKind


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
        self._unread = b""
        self._is_open = False
        self._names: dict[int, str] = {}
        self._device_of_queue: dict[int, int] = {}
        #: Host time less device time by device, ns, at the latest reading of its clock.
        self._shift_ns: dict[int, int] = {}

    def read(self, limit_bytes: int = -1) -> TailedRecords:
        """Read at most `limit_bytes` more, or all where that is negative; a log that is not there yet has nothing.

        Raises MeasurementError: the file is no such log, or cannot be read.
        """
        self._unread += self._appended(limit_bytes)
        commands: list[bytes] = []
        n_lost = 0
        for kind, content in self._records():
            if kind == RecordKind.COMMAND:
                commands.append(content[: COMMAND_DTYPE.itemsize])
            elif kind == RecordKind.LOSS:
                n_lost += CONTENT[RecordKind.LOSS].unpack_from(content)[2]
            else:
                self._learn(kind, content)
        found = np.frombuffer(b"".join(commands), COMMAND_DTYPE)
        return TailedRecords(kernels=tuple(self._kernels(found)), n_lost=n_lost)

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

    def _records(self) -> Iterator[tuple[int, bytes]]:
        """Yield what is there whole, by kind, without its prefix; keep the rest."""
        at = 0 if self._is_open else self._skip_header()
        while self._is_open and len(self._unread) - at >= PREFIX.size:
            kind, n_bytes = PREFIX.unpack_from(self._unread, at)
            if not LEAST_BYTES.get(kind, PREFIX.size) <= n_bytes <= LONGEST_BYTES:
                raise MeasurementError(f"{self._path}: a record of kind {kind} with {n_bytes} bytes; the log is broken")
            if len(self._unread) - at < n_bytes:
                break
            yield kind, self._unread[at + PREFIX.size : at + n_bytes]
            at += n_bytes
        self._unread = self._unread[at:]

    def _skip_header(self) -> int:
        if len(self._unread) < HEADER.size:
            return 0
        magic, header_bytes, _, _ = HEADER.unpack_from(self._unread)
        if magic != MAGIC:
            raise MeasurementError(
                f"{self._path}: begins with {magic!r}, expected {MAGIC!r}; it is no log of the layer"
            )
        self._is_open = len(self._unread) >= header_bytes
        return int(header_bytes) if self._is_open else 0

    def _learn(self, kind: int, content: bytes) -> None:
        if kind == RecordKind.NAME:
            text = CONTENT[RecordKind.NAME]
            name, length = text.unpack_from(content)
            self._names[name] = content[text.size : text.size + length].decode(errors="replace")
        elif kind == RecordKind.QUEUE:
            queue, _, device, _ = CONTENT[RecordKind.QUEUE].unpack_from(content)
            self._device_of_queue[queue] = device
        elif kind == RecordKind.CLOCK:
            device, _, device_ns, before_ns, after_ns = CONTENT[RecordKind.CLOCK].unpack_from(content)
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
