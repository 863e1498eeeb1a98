"""What a process that measures shapes is asked, and what it answers: one line of JSON each."""

from __future__ import annotations

import json
import mmap
import struct
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Protocol, TypeVar

from perfsuite.errors import MeasurementError
from perfsuite.measure.shapes.meter import BenchDescription, Deviation
from perfsuite.records.codec import from_plain, parse_json

_Read = TypeVar("_Read")

#: Steps so far, and the place of the case in the request that is being answered.
_FORMAT = struct.Struct("=qq")


class ProgressMark:
    """A mark that one process sets and another one reads, whatever becomes of the first; neither waits."""

    def __init__(self, path: Path) -> None:
        """Map the file, which holds nothing yet or another's mark."""
        with path.open("a+b") as file:
            file.truncate(mmap.PAGESIZE)
            self._page = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    def step(self, place: int) -> None:
        """Say that another step begins, at a case of the request."""
        n_steps, _ = self.read()
        _FORMAT.pack_into(self._page, 0, n_steps + 1, place)

    def read(self) -> tuple[int, int]:
        """Return the number of steps that were begun, and the place of the last one's case."""
        n_steps, place = _FORMAT.unpack_from(self._page, 0)
        return n_steps, place

    def close(self) -> None:
        self._page.close()


#: What an answer's line begins with; libraries print to the same pipe.
ANSWER_MARK = "perfsuite-shapes: "


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

    #: Counts from 1 in each process; its answer carries it back.
    number: int
    kind: RequestKind
    case_ids: tuple[str, ...]
    #: Samples of each case.
    n_samples: int = 1
    #: Draws the order of a round.
    order_seed: int = 0
    #: Launches of each sample; None where the service says.
    n_launches: int | None = None

    def to_line(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_line(cls, line: str) -> ShapeRequest:
        """Read a request; `MeasurementError` where it is none."""
        return _read(line, cls, "request")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeAnswer:
    """What came of a request; of the last fields those that its kind asks for.

    The first of a process has the number 0 and answers nothing: it describes the bench, which is ready.
    """

    number: int
    #: Why there is nothing, for a reason that a user can act on.
    failure: str | None = None
    description: BenchDescription | None = None
    problem: str | None = None
    deviation: Deviation | None = None
    #: By case of the request, ns.
    samples_ns: tuple[tuple[int, ...], ...] = ()

    def to_line(self) -> str:
        """Return the answer as a marked line of JSON, without the line's end."""
        return f"{ANSWER_MARK}{json.dumps(asdict(self))}"

    @classmethod
    def from_line(cls, line: str) -> ShapeAnswer:
        """Read a marked line; `MeasurementError` where it is none."""
        return _read(line.removeprefix(ANSWER_MARK), cls, "answer")


def _read(line: str, kind: type[_Read], what: str) -> _Read:
    where, expected = f"shapes: no {what}: {line[:80]!r}", "expected a line of the suite"
    try:
        plain = parse_json(line, allows_nan=True)
    except ValueError as error:
        raise MeasurementError(f"{where} ({error}); {expected}") from None
    return from_plain(plain, kind, where, MeasurementError, expected, is_closed=True)


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
