"""Writes a trace's file from the front to the back, so that it can be read at any time."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from perfsuite.errors import MeasurementError
from perfsuite.records.codec import pack, to_plain
from perfsuite.records.engine_trace import Events, Experts
from perfsuite.records.trace_blocks import MAGIC, BlockKind, block_head
from perfsuite.records.trace_tables import FIELDS, Graphs, TraceEnd, TraceHeader, TraceTables, plain_graphs


class TraceWriter:
    """Writes a trace block by block; the file can be read at any time, up to its last whole block.

    Parameters
    ----------
    path
        A file that is not there yet.
    header
        What is known before the first event.
    overwrites
        Whether a file that is there may be replaced.

    Raises
    ------
    MeasurementError
        The file is there already, or cannot be written; so do all methods.
    """

    def __init__(self, path: Path, header: TraceHeader, *, overwrites: bool = False) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._out = path.open("wb" if overwrites else "xb", buffering=0)
        except FileExistsError:
            raise MeasurementError(f"{path}: is there already; name another file, or remove it") from None
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
