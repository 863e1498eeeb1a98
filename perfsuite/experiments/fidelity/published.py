"""Accuracies of a profiler as its paper prints them, with the latencies that they were computed from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.published import published_dir
from perfsuite.records.codec import Number, Positive, Size, read_json

#: The schema that is read.
_FILE_SCHEMA = 1

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
    measured_ns: Size | None
    ground_truth_ns: Size | None
    accuracy_percent: Number
    scaled_error_us_per_ms: Number

    def __post_init__(self) -> None:
        """Refuse one latency without the other."""
        if (self.measured_ns is None) is not (self.ground_truth_ns is None):
            raise ValueError(f"{self.name} has one of measured_ns and ground_truth_ns, expected both or neither")


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """Who printed it."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedMean:
    """A mean accuracy that the paper states of a table's rows."""

    table: str
    device: str | None
    accuracy_percent: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFidelity:
    """All rows of a paper, and in which steps their numbers are printed."""

    paper: Paper
    latency_resolution_ns: Positive
    accuracy_resolution_percent: Positive
    scaled_error_resolution_us_per_ms: Positive
    rows: tuple[PublishedRow, ...]
    stated_means: tuple[StatedMean, ...]


def published_fidelity(path: Path | None = None) -> PublishedFidelity:
    """Read lm-Meter's rows, or another file of the same fields.

    Raises `PerfsuiteError`: the file cannot be read, has another schema, or a field that is missing, unknown or of
    another type.
    """
    path = published_dir() / _FOLDER / _NAME if path is None else path
    return read_json(path, PublishedFidelity, PerfsuiteError, "restore it from version control", schema=_FILE_SCHEMA)
