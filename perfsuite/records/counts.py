"""Counted work: the rows that the counting tool leaves, and what was counted of a model, as it is kept.

At each reading of a clock, a row says what the process had done until then; the reading itself is the number of
instructions (`native/src/counting/counting.c`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from perfsuite.errors import MeasurementError
from perfsuite.records.codec import Count, Name, double, read_json, to_plain
from perfsuite.records.whole_file import write_json

_SCHEMA = 1
_TODO = "count again with --baseline=record"

METRICS = (
    *("instructions", "reads", "bytes_read", "writes", "bytes_written"),
    *("branches", "allocations", "bytes_allocated"),
)

#: A reading of a clock: all counters so far, and the thread that read it.
ROW_DTYPE = np.dtype([(name, "<u8") for name in (*METRICS, "thread")])

#: More is no run that anybody waits for.
MOST_ROWS = 1 << 20


def read_rows(path: Path) -> npt.NDArray[Any]:
    """Return the readings that a counted process left, `ROW_DTYPE`.

    Raises MeasurementError: there is none, it is cut, or its counts do not rise.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise MeasurementError(f"{path}: {error.strerror}; was the process counted to its end?") from error
    if not content or len(content) % ROW_DTYPE.itemsize:
        raise MeasurementError(f"{path}: {len(content)} bytes, expected rows of {ROW_DTYPE.itemsize}; count again")
    rows = np.frombuffer(content, ROW_DTYPE)
    if len(rows) >= MOST_ROWS:
        raise MeasurementError(f"{path}: {len(rows)} readings, expected below {MOST_ROWS}; count less")
    if np.any(np.diff(rows["instructions"].astype(np.int64)) <= 0):
        raise MeasurementError(f"{path}: its instructions do not rise from row to row; count again")
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What something did: `METRICS`."""

    instructions: Count
    reads: Count
    bytes_read: Count
    writes: Count
    bytes_written: Count
    branches: Count
    allocations: Count
    bytes_allocated: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRow(Counts):
    """What one phase, or one of its operators, did in all: layers, repetitions and tokens summed."""

    phase: Name
    #: The operator's role; empty for the whole phase.
    role: str

    @property
    def name(self) -> str:
        """The phase, and the role after a slash where there is one."""
        return f"{self.phase}/{self.role}" if self.role else self.phase


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedWork:
    """What a scenario takes on a pinned build, and of what that was made."""

    model: Name
    #: SHA-256 of the model's file.
    model_digest: Name
    scenario: Name
    #: What else decides what there is to do, such as ``kv_types=f16/f16``.
    settings: str
    #: Which llama.cpp, the hash of its sources, and the digest of the bundle that ran it.
    llama: Name
    llama_digest: Name
    bundle: Name
    compiler: Name
    processor: Name
    rows: tuple[CountRow, ...]

    @property
    def prefix(self) -> str:
        return f"{self.model}/{self.scenario}"

    @property
    def counts(self) -> dict[str, int]:
        """Every count, by ``phase/metric`` or ``phase/role/metric``."""
        return {f"{row.name}/{metric}": getattr(row, metric) for row in self.rows for metric in METRICS}


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonBuild:
    """A Python, as far as it makes a difference to what is counted in it."""

    version: Name
    #: Of the program and of the libraries that it starts with.
    digest: Name
    #: What Valgrind shows of the processor, by which libraries choose their code.
    processor: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCounts:
    """What a call of somebody's own function did, and in which Python."""

    case_id: Name
    python: PythonBuild
    counts: Counts


def own_counts_path(baseline_dir: Path, case_id: str) -> Path:
    """Return where the counts of a call are kept, given the id of its case."""
    return baseline_dir / "counted" / "own" / f"{case_id.partition('/')[2]}.json"


def counts_path(baseline_dir: Path, processor: str, prefix: str) -> Path:
    """Return where the counts of a workload are kept, given the middle of its case ids."""
    return baseline_dir / "counted" / processor / f"{prefix.replace('/', '-')}.json"


def write_counts(path: Path, counted: CountedWork | OwnCounts) -> None:
    """Write what was counted, whole or not at all.

    Raises MeasurementError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"schema": _SCHEMA, **to_plain(counted)}, MeasurementError)


def read_counts(path: Path) -> CountedWork:
    """Read what was counted before.

    Raises MeasurementError: it is no such file, or names an operator twice.
    """
    counted = read_json(path, CountedWork, MeasurementError, _TODO, schema=_SCHEMA)
    if (twice := double(row.name for row in counted.rows)) is not None:
        raise MeasurementError(f"{path}: {twice}; {_TODO}")
    return counted


def read_own_counts(path: Path) -> OwnCounts | None:
    """Read what a call did before; None where nothing was kept.

    Raises MeasurementError: it is no such file.
    """
    return read_json(path, OwnCounts, MeasurementError, _TODO, absent=None, schema=_SCHEMA)
