"""Records that a run sends while it goes on, and their form on a socket: one JSON object a line.

Every ``_ns`` is an integer of nanoseconds; points of time are of CLOCK_MONOTONIC, which all processes of a machine
share. ``kind`` says which record a line is; who does not know a kind, or a field, passes over it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from perfsuite.errors import MeasurementError
from perfsuite.records.codec import parse_json, rebuilt, to_plain


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePhase:
    """A phase that has ended, as `perfsuite.records.events.Span` has it."""

    kind: ClassVar[str] = "phase"
    phase: str
    repetition: int
    #: Position of the first token in its sequence.
    token: int
    n_tokens: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveToken:
    """A token that has been decoded."""

    kind: ClassVar[str] = "token"
    repetition: int
    #: Counts the decode steps of the repetition from 0.
    step: int
    token: int
    #: Of the decode step alone.
    latency_ns: int
    end_ns: int
    #: Tokens of the repetition so far, over the time from the begin of its first decode step to the end of this one.
    tokens_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveKernel:
    """An OpenCL kernel that has ended; the device's times are moved to the host's clock by its latest reading."""

    kind: ClassVar[str] = "kernel"
    sequence: int
    name: str
    queue: int
    #: When the program called to enqueue it.
    enqueue_ns: int
    #: None where the driver gave no times, or its clock was not read yet.
    queued_ns: int | None
    submit_ns: int | None
    start_ns: int | None
    end_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveForecast:
    """What the token records so far say about a token to come; nine outcomes of ten are meant to lie within."""

    kind: ClassVar[str] = "forecast"
    repetition: int
    #: The step that is forecast, and how many steps after the latest it comes.
    step: int
    horizon: int
    forecast_ns: int
    lower_ns: int
    upper_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveLoss:
    """Records that this subscriber does not get."""

    kind: ClassVar[str] = "loss"
    #: ``queue``: the publisher came too late. ``subscriber``: this subscriber did. ``backlog``: they were sent before
    #: it came, and forgotten. ``opencl``: the layer lost them, or its log cannot be read.
    where: str
    n_records: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveEnd:
    """The run has ended, and with it the stream."""

    kind: ClassVar[str] = "end"
    end_ns: int
    #: Whether the run came to its own end.
    is_complete: bool
    #: What was sent in all, whoever got it.
    n_phases: int
    n_tokens: int
    n_kernels: int


LiveRecord = LivePhase | LiveToken | LiveKernel | LiveForecast | LiveLoss | LiveEnd

_KINDS: dict[str, type[Any]] = {
    kind.kind: kind for kind in (LivePhase, LiveToken, LiveKernel, LiveForecast, LiveLoss, LiveEnd)
}
_ENCODE = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def to_line(record: LiveRecord) -> str:
    """Write a record as JSON, without the line's end."""
    return _ENCODE({"kind": record.kind, **to_plain(record)})


def from_line(line: str | bytes) -> LiveRecord | None:
    """Read a record; None is one of a kind that this version does not know.

    Raises MeasurementError: the line is no JSON object, or lacks a field.
    """
    try:
        plain = parse_json(line)
        kind = _KINDS.get(plain["kind"])
        return None if kind is None else rebuilt(plain, kind)
    except (ValueError, KeyError, TypeError) as error:
        shown = line[:80] if isinstance(line, str) else line[:80].decode(errors="replace")
        raise MeasurementError(f"live record {shown!r}: not a record of this suite ({error!r})") from error
