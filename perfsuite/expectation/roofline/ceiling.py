"""One measured ceiling of a device, or why it is missing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from perfsuite.errors import MeasurementError
from perfsuite.records.codec import Name, Positive, Size, from_plain, to_plain

#: What is called a processor in a `Ceiling`, where it is no OpenCL device.
CPU = "cpu"

#: The uses of memory and the types of number whose rates are measured.
BANDWIDTH_KINDS = ("read", "copy", "triad")
COMPUTE_KINDS = ("fp32", "f16", "int8")


class Resource(str, Enum):
    """What a ceiling limits."""

    BANDWIDTH = "bandwidth"
    COMPUTE = "compute"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How fast something was in several rounds: bytes or FLOPs per second."""

    #: The fastest repetition of all rounds: whatever disturbs one can only slow it.
    best_per_s: Positive
    #: The median of the rounds' bests.
    median_per_s: Positive
    n_rounds: Size

    def __post_init__(self) -> None:
        """Refuse a median above the best."""
        if self.median_per_s > self.best_per_s:
            raise MeasurementError(f"median_per_s is {self.median_per_s}, expected at most the best, {self.best_per_s}")

    @property
    def spread_ratio(self) -> float:
        """How far the median round stays below the best, as a share of the best: 0 where all are alike."""
        return 1.0 - self.median_per_s / self.best_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """The most that a processor does of one kind of work; either `rate` or `missing` says something."""

    #: ``cpu``, or the name of an OpenCL device.
    processor: Name
    resource: Resource
    #: One of `BANDWIDTH_KINDS` or `COMPUTE_KINDS`.
    kind: str
    #: Threads that worked together; None where the processor does not report it, as OpenCL does not.
    n_threads: Size | None = None
    #: All arrays together, of a bandwidth; where they fit decides which level of memory this is.
    working_set_bytes: Size | None = None
    rate: Rate | None = None
    #: Why there is no rate.
    missing: str = ""
    #: What the data sheet promises, and where it says so.
    theoretical_per_s: Positive | None = None
    theoretical_source: str = ""

    def __post_init__(self) -> None:
        """Refuse a kind or a working set of another resource, and a rate beside a reason why there is none.

        A bandwidth has a working set and arithmetic none; where there is no device, neither has.
        """
        is_bandwidth = self.resource is Resource.BANDWIDTH
        kinds = BANDWIDTH_KINDS if is_bandwidth else COMPUTE_KINDS
        has_set, has_rate = self.working_set_bytes is not None, self.rate is not None
        fits_set = is_bandwidth if has_set else not (is_bandwidth and has_rate)
        for name, is_right, accepted in (
            ("kind", self.kind in kinds, f"one of {', '.join(kinds)} of {self.resource.value}"),
            ("working_set_bytes", fits_set, "a whole number above 0 of a bandwidth, and null of arithmetic"),
            ("missing", has_rate is not bool(self.missing), "a reason where there is no rate, and only there"),
        ):
            if not is_right:
                raise MeasurementError(f"{name} is {getattr(self, name)!r}, expected {accepted}")

    def to_plain(self) -> dict[str, Any]:
        """Return the same as values that JSON has."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    @classmethod
    def from_plain(cls, plain: object) -> Ceiling:
        """Build from what `to_plain` returned; anything else is a MeasurementError that names the field."""
        return from_plain(plain, cls, "ceiling", MeasurementError, "measure again", is_closed=True)


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
