"""All ceilings of a device, and those of one processor with one number of threads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from perfsuite.errors import MeasurementError
from perfsuite.expectation.roofline.ceiling import CPU, Ceiling, Rate, Resource
from perfsuite.records.ceilings import fastest_bytes_per_s


class Regime(str, Enum):
    """Which of the two ceilings limits a piece of work."""

    MEMORY = "memory"
    COMPUTE = "compute"


@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """A peak of arithmetic and a bandwidth, which meet at the ridge point.

    *Source*: Williams, Waterman and Patterson, Roofline, CACM 52(4), 2009; RooflineBench, section 3.
    """

    peak_flops_per_s: float
    bandwidth_bytes_per_s: float

    @property
    def ridge_point(self) -> float:
        """The operational intensity from which arithmetic is the limit, FLOPs per byte: peak / bandwidth."""
        return self.peak_flops_per_s / self.bandwidth_bytes_per_s

    def attainable_flops_per_s(self, operational_intensity: float) -> float:
        """Return min(peak, operational intensity x bandwidth)."""
        return min(self.peak_flops_per_s, operational_intensity * self.bandwidth_bytes_per_s)

    def regime(self, operational_intensity: float) -> Regime:
        """Return what limits work of this intensity; at the ridge point itself it is arithmetic."""
        return Regime.MEMORY if operational_intensity < self.ridge_point else Regime.COMPUTE


class RoofRates(Protocol):
    """What a roof rests on; `perfsuite.records.ceilings.Ceilings` has it as well."""

    @property
    def fp32_flops_per_s(self) -> float:
        """Multiply-adds of 32-bit floats."""

    @property
    def f16_flops_per_s(self) -> float | None:
        """Multiply-adds of 16-bit floats; None where the processor has none."""

    @property
    def int8_flops_per_s(self) -> float | None:
        """Dot products of 8-bit integers; None where they were not measured."""

    def fastest_bandwidth_bytes_per_s(self, working_set_bytes: int) -> float:
        """Return the bandwidth that no use of a working set can exceed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorCeilings:
    """The best rates of one processor with one number of threads."""

    #: Working set and the fastest of read, copy and triad over it, ascending.
    levels: tuple[tuple[int, float], ...]
    fp32_flops_per_s: float
    f16_flops_per_s: float | None
    int8_flops_per_s: float | None

    def fastest_bandwidth_bytes_per_s(self, working_set_bytes: int) -> float:
        """Return the fastest rate over every level from the largest that fits inside the working set upwards."""
        return fastest_bytes_per_s(self.levels, working_set_bytes)

    @property
    def memory_roof(self) -> Roof:
        """The classical roof: 32-bit arithmetic over the bandwidth of the largest working set."""
        return Roof(peak_flops_per_s=self.fp32_flops_per_s, bandwidth_bytes_per_s=self.levels[-1][1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Every ceiling that was looked for, the missing ones with their reasons."""

    ceilings: tuple[Ceiling, ...]

    def processors(self) -> tuple[tuple[str, int | None], ...]:
        """Return the processors with the numbers of threads that were measured."""
        return tuple(dict.fromkeys((each.processor, each.n_threads) for each in self.ceilings if each.rate))

    def of(self, processor: str = CPU, n_threads: int | None = None) -> ProcessorCeilings:
        """Return the ceilings of one processor with one number of threads.

        Raises MeasurementError: its bandwidth or its 32-bit arithmetic was not measured.
        """
        found = [each for each in self.ceilings if (each.processor, each.n_threads) == (processor, n_threads)]
        best = {each.kind: each.rate.best_per_s for each in found if each.rate and each.resource is Resource.COMPUTE}
        levels = _levels(found)
        if not levels or "fp32" not in best:
            threads = "" if n_threads is None else f" with {n_threads} threads"
            raise MeasurementError(
                f"ceilings of {processor}{threads}: bandwidth or 32-bit arithmetic was not measured; measure again"
            )
        return ProcessorCeilings(
            levels=levels,
            fp32_flops_per_s=best["fp32"],
            f16_flops_per_s=best.get("f16"),
            int8_flops_per_s=best.get("int8"),
        )

    def spread_ratio(self, resource: Resource, processor: str = CPU, n_threads: int | None = None) -> float:
        """Return how far a usual round stays below the best one.

        Of arithmetic it is the widest of all types; of bandwidth that of the fastest use of the largest working set,
        for those between two levels of cache swing with what else they hold.
        """
        identity = (processor, n_threads, resource)
        found = [each for each in self.ceilings if (each.processor, each.n_threads, each.resource) == identity]
        largest = max((each.working_set_bytes or 0 for each in found if each.rate), default=0)
        rates = [each.rate for each in found if each.rate and each.working_set_bytes in (None, largest)]
        if resource is Resource.BANDWIDTH:
            rates = sorted(rates, key=lambda rate: rate.best_per_s)[-1:]
        return max((rate.spread_ratio for rate in rates), default=0.0)


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


def _levels(ceilings: Iterable[Ceiling]) -> tuple[tuple[int, float], ...]:
    fastest: dict[int, float] = {}
    for each in ceilings:
        if each.rate and each.working_set_bytes is not None:
            held_bytes = each.working_set_bytes
            fastest[held_bytes] = max(fastest.get(held_bytes, 0.0), each.rate.best_per_s)
    return tuple(sorted(fastest.items()))
