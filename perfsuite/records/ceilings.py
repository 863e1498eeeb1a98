"""What a device can do at its best: the measured rates on which forecasts and physical floors stand."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from msgspec import Meta

from perfsuite.errors import MeasurementError
from perfsuite.records.codec import Positive, Size, from_plain, to_plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth:
    """The best that three uses of one working set move per second; every array counts, write-allocate does not."""

    #: All arrays and threads together; where they fit decides which cache level this measures.
    working_set_bytes: Size
    #: Every byte loaded.
    read_bytes_per_s: Positive
    #: ``a[i] = b[i]``; loads and stores counted. None where it was not measured.
    copy_bytes_per_s: Positive | None
    #: ``a[i] = b[i] + s * c[i]``; two loads and the store counted.
    triad_bytes_per_s: Positive | None

    @property
    def fastest_bytes_per_s(self) -> float:
        """The fastest of the three."""
        return max(self.read_bytes_per_s, self.copy_bytes_per_s or 0.0, self.triad_bytes_per_s or 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """The best rates of one processor with one number of threads, by the probes or out of a survey.

    Rates are the best of all repetitions and of all merged runs: interrupts, other processes and low frequency can only
    slow a repetition, so the fastest is nearest to what the hardware can do, and a floor on anything less would call
    honest measurements impossible.  The cost of a dispatch is a median, for it feeds forecasts only.
    """

    #: Threads that worked together; the rates are their sum.
    n_threads: Size
    #: Ascending by working set; the last one is far beyond every cache.
    bandwidths: Annotated[tuple[Bandwidth, ...], Meta(min_length=1, description="one level or more")]
    #: Multiply-adds of 32-bit floats, 2 FLOPs each.
    fp32_flops_per_s: Positive
    #: Dot products of 8-bit integers, 2 FLOPs a multiply-add; None where they were not measured.
    int8_flops_per_s: Positive | None
    #: Multiply-adds of 16-bit floats (bfloat16 or half); None where the processor has no such instruction.
    f16_flops_per_s: Positive | None
    #: One empty operator: a call on every thread and a barrier among them; a survey has none.
    dispatch_ns: Size | None

    @property
    def levels(self) -> tuple[tuple[int, float], ...]:
        """Working sets, ascending, and the fastest of read, copy and triad over each."""
        return tuple((level.working_set_bytes, level.fastest_bytes_per_s) for level in self.bandwidths)

    @property
    def fastest_flops_per_s(self) -> float:
        """The fastest arithmetic of any type of number."""
        return max(self.fp32_flops_per_s, self.int8_flops_per_s or 0.0, self.f16_flops_per_s or 0.0)

    def __post_init__(self) -> None:
        sets = [level.working_set_bytes for level in self.bandwidths]
        if sets != sorted(set(sets)):
            raise ValueError(f"working sets {sets} are not ascending")

    def sustained_bandwidth_bytes_per_s(self, working_set_bytes: int) -> float:
        """Return the read bandwidth that an honest forecast uses, that of the smallest level that holds the set.

        A working set between two measured ones gets the slower of them; beyond the largest, memory's.  Reading
        dominates what it is for: weights and KV are read once per token, and little is written.
        """
        fits = (level for level in self.bandwidths if level.working_set_bytes >= working_set_bytes)
        return next(fits, self.bandwidths[-1]).read_bytes_per_s

    def fastest_bandwidth_bytes_per_s(self, working_set_bytes: int) -> float:
        """Return the bandwidth that nothing can exceed, for physics' floor: the fastest of read, copy and triad."""
        return fastest_bytes_per_s(self.levels, working_set_bytes)

    def to_plain(self) -> dict[str, Any]:
        return {**to_plain(self), "bandwidths": to_plain([*self.bandwidths])}

    @classmethod
    def from_plain(cls, plain: object) -> Ceilings:
        """Build from what `to_plain` returned; anything else is a MeasurementError that names the field."""
        return from_plain(plain, cls, "ceilings", MeasurementError, "measure again", is_closed=True)


def fastest_bytes_per_s(levels: Sequence[tuple[int, float]], working_set_bytes: int) -> float:
    """Return the fastest bandwidth over every level, ascending, from the largest within the working set upwards.

    Part of a set between two levels may still be in the faster one.
    """
    least_bytes = max((size for size, _ in levels if size <= working_set_bytes), default=0)
    return max(rate for size, rate in levels if size >= least_bytes)


def merge_ceilings(runs: Sequence[Ceilings]) -> Ceilings:
    """Join several runs of the probes on one device: the best of every rate, the median of the dispatch cost."""
    if not runs:
        raise MeasurementError("ceilings: no run of the probes to merge; measure at least once")
    kinds = {(run.n_threads, tuple(level.working_set_bytes for level in run.bandwidths)) for run in runs}
    if len(kinds) > 1:
        seen = " and ".join(f"{n_threads} threads over {[*sets]} bytes" for n_threads, sets in sorted(kinds))
        raise MeasurementError(f"ceilings: runs of {seen} cannot be merged; measure all alike")
    dispatches = [run.dispatch_ns for run in runs if run.dispatch_ns is not None]
    return Ceilings(
        n_threads=runs[0].n_threads,
        bandwidths=tuple(
            replace(levels[0], **{name: _best(levels, name) for name in _USES})
            for levels in zip(*(run.bandwidths for run in runs), strict=True)
        ),
        **{name: _best(runs, name) for name in ("fp32_flops_per_s", "int8_flops_per_s", "f16_flops_per_s")},
        dispatch_ns=round(statistics.median(dispatches)) if dispatches else None,
    )


_USES = ("read_bytes_per_s", "copy_bytes_per_s", "triad_bytes_per_s")


def _best(records: Sequence[object], name: str) -> Any:
    return max((rate for each in records if (rate := getattr(each, name)) is not None), default=None)
