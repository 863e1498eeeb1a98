"""One measured ceiling of a device, or why it is missing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from enum import Enum
from typing import Any

from perfsuite.errors import MeasurementError

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
    best_per_s: float
    #: The median of the rounds' bests.
    median_per_s: float
    n_rounds: int

    @property
    def spread_ratio(self) -> float:
        """How far the median round stays below the best, as a share of the best: 0 where all are alike."""
        return 1.0 - self.median_per_s / self.best_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """The most that a processor does of one kind of work; either `rate` or `missing` says something."""

    #: ``cpu``, or the name of an OpenCL device.
    processor: str
    resource: Resource
    #: One of `BANDWIDTH_KINDS` or `COMPUTE_KINDS`.
    kind: str
    #: Threads that worked together; None where the processor does not report it, as OpenCL does not.
    n_threads: int | None = None
    #: All arrays together, of a bandwidth; where they fit decides which level of memory this is.
    working_set_bytes: int | None = None
    rate: Rate | None = None
    #: Why there is no rate.
    missing: str = ""
    #: What the data sheet promises, and where it says so.
    theoretical_per_s: float | None = None
    theoretical_source: str = ""

    def to_plain(self) -> dict[str, Any]:
        """Return the same as values that JSON has."""
        return {**asdict(self), "resource": self.resource.value}

    @classmethod
    def from_plain(cls, plain: object) -> Ceiling:
        """Build from what `to_plain` returned; anything else is a MeasurementError that names the field."""
        values = _checked_keys(plain)
        try:
            rate = None if values["rate"] is None else Rate(**values["rate"])
            ceiling = cls(**{**values, "resource": Resource(values["resource"]), "rate": rate})
        except (TypeError, ValueError) as error:
            raise MeasurementError(f"ceiling {values['kind']!r}: {error}; measure again") from error
        for name, accepted in _faults(ceiling):
            raise MeasurementError(
                f"ceiling {ceiling.kind!r}: {name} is {values[name]!r}, expected {accepted}; measure again"
            )
        return ceiling


def _checked_keys(plain: object) -> Mapping[str, Any]:
    names = {field.name for field in fields(Ceiling)}
    if not isinstance(plain, Mapping) or set(plain) != names:
        seen = sorted(map(str, plain)) if isinstance(plain, Mapping) else type(plain).__name__
        raise MeasurementError(f"ceiling: fields are {seen}, expected {sorted(names)}; measure again")
    return plain


def _faults(ceiling: Ceiling) -> Iterator[tuple[str, str]]:
    """Yield each field that no ceiling has, and what is accepted of it."""
    is_bandwidth = ceiling.resource is Resource.BANDWIDTH
    kinds = BANDWIDTH_KINDS if is_bandwidth else COMPUTE_KINDS
    if not isinstance(ceiling.processor, str) or not ceiling.processor:
        yield "processor", "a name"
    if ceiling.kind not in kinds:
        yield "kind", f"one of {', '.join(kinds)} of {ceiling.resource.value}"
    if ceiling.n_threads is not None and not _is_count(ceiling.n_threads):
        yield "n_threads", "a whole number above 0, or null"
    if not _has_fitting_set(ceiling):
        yield "working_set_bytes", "a whole number above 0 of a bandwidth, and null of arithmetic"
    if not isinstance(ceiling.missing, str) or (ceiling.rate is None) is not bool(ceiling.missing):
        yield "missing", "a reason where there is no rate, and only there"
    if ceiling.rate is not None and not _is_sound(ceiling.rate):
        yield "rate", "rates above 0, the median not above the best, of 1 round or more"
    if ceiling.theoretical_per_s is not None and not _is_rate(ceiling.theoretical_per_s):
        yield "theoretical_per_s", "a rate above 0, or null"


def _has_fitting_set(ceiling: Ceiling) -> bool:
    """Say whether a bandwidth has a working set and arithmetic none; where there is no device, neither has."""
    if ceiling.working_set_bytes is None:
        return ceiling.resource is Resource.COMPUTE or ceiling.rate is None
    return ceiling.resource is Resource.BANDWIDTH and _is_count(ceiling.working_set_bytes)


def _is_sound(rate: Rate) -> bool:
    rates = (rate.median_per_s, rate.best_per_s)
    return all(_is_rate(each) for each in rates) and rates == tuple(sorted(rates)) and _is_count(rate.n_rounds)


def _is_rate(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
