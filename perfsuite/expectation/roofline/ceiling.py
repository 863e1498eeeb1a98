"""The measured ceilings of a device, or why one is missing, and the rates of other programs beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from perfsuite.errors import MeasurementError
from perfsuite.records.ceilings import Bandwidth, Ceilings
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Every ceiling that was looked for, the missing ones with their reasons."""

    ceilings: tuple[Ceiling, ...]

    @property
    def thread_counts(self) -> frozenset[int]:
        """The numbers of threads that the processor was measured with."""
        return frozenset(each.n_threads for each in self._measured() if each.n_threads)

    def of(self, n_threads: int) -> Ceilings:
        """Return the ceilings of the processor with one number of threads.

        Raises MeasurementError: its bandwidth or its 32-bit arithmetic was not measured.
        """
        best: dict[int | None, dict[str, float]] = {}
        for each in self._measured(n_threads):
            if each.rate:
                best.setdefault(each.working_set_bytes, {})[each.kind] = each.rate.best_per_s
        arithmetic = best.pop(None, {})
        levels = sorted((size, rates) for size, rates in best.items() if size is not None and "read" in rates)
        if not levels or "fp32" not in arithmetic:
            raise MeasurementError(
                f"ceilings of {CPU} with {n_threads} threads: bandwidth or 32-bit arithmetic was not measured; "
                "measure again"
            )
        return Ceilings(
            n_threads=n_threads,
            bandwidths=tuple(
                Bandwidth(
                    working_set_bytes=size,
                    read_bytes_per_s=rates["read"],
                    copy_bytes_per_s=rates.get("copy"),
                    triad_bytes_per_s=rates.get("triad"),
                )
                for size, rates in levels
            ),
            fp32_flops_per_s=arithmetic["fp32"],
            f16_flops_per_s=arithmetic.get("f16"),
            int8_flops_per_s=arithmetic.get("int8"),
            dispatch_ns=None,
        )

    def spread_ratio(self, resource: Resource, n_threads: int) -> float:
        """Return how far a usual round stays below the best one.

        Of arithmetic it is the widest of all types; of bandwidth that of the fastest use of the largest working set,
        for those between two levels of cache swing with what else they hold.
        """
        found = [each for each in self._measured(n_threads) if each.resource is resource]
        largest = max((each.working_set_bytes or 0 for each in found), default=0)
        rates = [each.rate for each in found if each.rate and each.working_set_bytes in (None, largest)]
        if resource is Resource.BANDWIDTH:
            rates = sorted(rates, key=lambda rate: rate.best_per_s)[-1:]
        return max((rate.spread_ratio for rate in rates), default=0.0)

    def _measured(self, n_threads: int | None = None) -> Iterator[Ceiling]:
        for each in self.ceilings:
            if each.rate and each.processor == CPU and n_threads in (None, each.n_threads):
                yield each


def merge_surveys(surveys: Sequence[Survey]) -> Survey:
    """Join surveys of one device: of each ceiling the best rate, and the mean of the medians by rounds."""
    by_identity: dict[object, list[Ceiling]] = {}
    for ceiling in (each for survey in surveys for each in survey.ceilings):
        key = (ceiling.processor, ceiling.n_threads, ceiling.resource, ceiling.kind, ceiling.working_set_bytes)
        by_identity.setdefault(key, []).append(ceiling)
    return Survey(ceilings=tuple(_merged(alike) for alike in by_identity.values()))


def _merged(alike: Sequence[Ceiling]) -> Ceiling:
    rates = [each.rate for each in alike if each.rate]
    if not rates:
        return alike[0]
    n_rounds = sum(rate.n_rounds for rate in rates)
    best_per_s = max(rate.best_per_s for rate in rates)
    median_per_s = sum(rate.median_per_s * rate.n_rounds for rate in rates) / n_rounds
    # A mean of equal numbers may be a rounding above them.
    rate = Rate(best_per_s=best_per_s, median_per_s=min(best_per_s, median_per_s), n_rounds=n_rounds)
    return replace(alike[0], rate=rate, missing="")
