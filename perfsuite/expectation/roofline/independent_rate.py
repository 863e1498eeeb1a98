"""A rate that a program which is not the suite's own has reached: what our ceilings are held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from perfsuite.errors import MeasurementError
from perfsuite.expectation.roofline.ceiling import Resource
from perfsuite.records.codec import Positive, Size, from_plain, to_plain


@dataclass(frozen=True, slots=True, kw_only=True)
class IndependentRate:
    """One rate of one program; a ceiling of ours below it is too low."""

    #: ``numpy``, ``likwid-bench``, ``stream`` or ``clpeak``.
    program: str
    resource: Resource
    #: As in a `Ceiling`: what the program did is as nearly this as it has.
    kind: str
    #: As in a `Ceiling`.
    processor: str
    #: Threads that worked together; None where the program does not report it.
    n_threads: Size | None
    #: Bytes or FLOPs per second, all arrays counted: the best repetition, or the mean where the program gives no more.
    best_per_s: Positive

    def to_plain(self) -> dict[str, Any]:
        """Return the same as values that JSON has."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    @classmethod
    def from_plain(cls, plain: object) -> IndependentRate:
        """Build from what `to_plain` returned; anything else is a MeasurementError."""
        return from_plain(plain, cls, "independent rate", MeasurementError, "measure again", is_closed=True)
