"""Accuracies of a profiler as its paper prints them, with the latencies that they were computed from."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.published import published_dir

#: The schema that is read.
SCHEMA = 1

_FOLDER, _NAME = "fidelity", "lm-meter.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRow:
    """One printed row."""

    #: ``phases`` or ``kernels``.
    table: str
    #: None where the table does not tell.
    device: str | None
    #: What the phase or the kernel belongs to: an architecture, or a phase.
    subject: str
    name: str
    #: None where they were not taken along.
    measured_ns: int | None
    ground_truth_ns: int | None
    accuracy_percent: float
    scaled_error_us_per_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedMean:
    """A mean accuracy that the paper states of a table's rows."""

    table: str
    device: str | None
    accuracy_percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFidelity:
    """All rows of a paper, and in which steps their numbers are printed."""

    paper: str
    latency_resolution_ns: float
    accuracy_resolution_percent: float
    scaled_error_resolution_us_per_ms: float
    rows: tuple[PublishedRow, ...]
    stated_means: tuple[StatedMean, ...]


def published_fidelity(path: Path | None = None) -> PublishedFidelity:
    """Read lm-Meter's rows, or another file of the same fields.

    Raises
    ------
    PerfsuiteError
        The file cannot be read, has another schema, or a field that is missing, unknown or of another type.
    """
    path = published_dir() / _FOLDER / _NAME if path is None else path
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PerfsuiteError(f"{path}: cannot be read ({error})") from error
    schema = plain.get("schema") if isinstance(plain, dict) else type(plain).__name__
    if schema != SCHEMA:
        raise PerfsuiteError(f"{path}: schema is {schema!r}, expected {SCHEMA}")
    try:
        return _fidelity(plain)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PerfsuiteError(f"{path}: cannot be used ({type(error).__name__}: {error})") from error


def _fidelity(plain: Any) -> PublishedFidelity:
    return PublishedFidelity(
        paper=plain["paper"]["name"],
        latency_resolution_ns=_positive(plain["latency_resolution_ns"]),
        accuracy_resolution_percent=_positive(plain["accuracy_resolution_percent"]),
        scaled_error_resolution_us_per_ms=_positive(plain["scaled_error_resolution_us_per_ms"]),
        rows=tuple(_row(PublishedRow(**each)) for each in plain["rows"]),
        stated_means=tuple(StatedMean(**each) for each in plain["stated_means"]),
    )


def _row(row: PublishedRow) -> PublishedRow:
    latencies = (row.measured_ns, row.ground_truth_ns)
    if latencies != (None, None):
        for each in latencies:
            _positive(each)
    if not all(isinstance(each, int | float) for each in (row.accuracy_percent, row.scaled_error_us_per_ms)):
        raise ValueError(f"{row.name}: accuracy and scaled error are no numbers")
    return row


def _positive(value: Any) -> float:
    if isinstance(value, bool) or not 0 < float(value) < math.inf:
        raise ValueError(f"{value!r} is no number above 0")
    return float(value)
