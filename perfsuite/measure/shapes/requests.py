"""What a process that measures shapes is asked, and what it answers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any, Protocol

from perfsuite.errors import MeasurementError
from perfsuite.measure.shapes.meter import BenchDescription, Deviation
from perfsuite.records.codec import from_plain, parse_json


class RequestKind(str, Enum):
    """What is asked, by the method of a `ShapeMeter`."""

    PROBLEM = "problem"
    VERIFY = "verify"
    SAMPLES = "samples"
    #: Of two cases, the old one first.
    PAIRS = "pairs"
    ROUND = "round"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeRequest:
    """One question."""

    kind: RequestKind
    case_ids: tuple[str, ...]
    #: Samples of each case.
    n_samples: int = 1
    #: Draws the order of a round.
    order_seed: int = 0
    #: Launches of each sample; None where the service says.
    n_launches: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeAnswer:
    """What came of a request; of the last fields those that its kind asks for."""

    #: Why there is nothing, for a reason that a user can act on.
    failure: str | None = None
    problem: str | None = None
    deviation: Deviation | None = None
    #: By case of the request, ns.
    samples_ns: tuple[tuple[int, ...], ...] = ()

    def to_line(self) -> str:
        """Return the answer as a line of JSON, without the line's end."""
        return json.dumps(asdict(self))

    @classmethod
    def from_line(cls, line: str) -> ShapeAnswer:
        """Read a line; `MeasurementError` where it is none."""
        where, expected = f"shapes: no answer: {line[:80]!r}", "expected a line of the suite"
        try:
            plain = parse_json(line, allows_nan=True)
        except ValueError as error:
            raise MeasurementError(f"{where} ({error}); {expected}") from None
        return from_plain(plain, cls, where, MeasurementError, expected, is_closed=True)


class ShapeSession(Protocol):
    """A process that measures shapes when it is asked to, on whatever board."""

    #: What it measures on.
    description: BenchDescription

    @property
    def is_open(self) -> bool:
        """Whether it can be asked."""

    def ask(self, kind: RequestKind, case_ids: tuple[str, ...], **asked: Any) -> ShapeAnswer:
        """Return the answer to a request, whose other fields are `asked`.

        Raises `ShapeCrashError` where the process died or hung at a case; `MeasurementError` where there is no answer.
        """

    def close(self) -> None:
        """End the process."""
