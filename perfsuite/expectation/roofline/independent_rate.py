"""A rate that a program which is not the suite's own has reached: what our ceilings are held against."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from perfsuite.errors import MeasurementError
from perfsuite.expectation.roofline.ceiling import Resource


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
    n_threads: int | None
    #: Bytes or FLOPs per second, all arrays counted: the best repetition, or the mean where the program gives no more.
    best_per_s: float

    def to_plain(self) -> dict[str, Any]:
        """Return the same as values that JSON has."""
        return {**asdict(self), "resource": self.resource.value}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> IndependentRate:
        """Build from what `to_plain` returned; anything else is a MeasurementError."""
        try:
            rate = cls(**{**plain, "resource": Resource(plain["resource"])})
        except (TypeError, KeyError, ValueError) as error:
            raise MeasurementError(f"independent rate: {error}; measure again") from error
        if not isinstance(rate.best_per_s, int | float) or not 0.0 < rate.best_per_s < math.inf:
            raise MeasurementError(
                f"independent rate of {rate.program}: {rate.best_per_s!r}, expected more than 0; measure again"
            )
        return rate
