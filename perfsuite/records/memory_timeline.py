"""What a process had in memory over its run, as samples and by phase."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

from msgspec import Meta

from perfsuite.errors import MeasurementError
from perfsuite.records.codec import Count, from_row, rebuilt, to_plain


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySample:
    """What of a process was resident at one moment, on the monotonic clock."""

    at_ns: Count
    #: Memory that no file stands behind.
    anonymous_bytes: Count
    #: Mapped files: libraries, and the weights of a model that is mapped.
    file_bytes: Count
    shared_bytes: Count

    @property
    def rss_bytes(self) -> int:
        return self.anonymous_bytes + self.file_bytes + self.shared_bytes

    def to_plain(self) -> list[int]:
        return list(to_plain(self).values())

    @classmethod
    def from_plain(cls, plain: object) -> MemorySample:
        """Build from what `to_plain` returned; anything else is a MeasurementError."""
        try:
            return from_row(plain, cls)
        except ValueError as error:
            raise MeasurementError(f"memory sample: {error}; measure again") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPhase:
    """A part of the run with the most that a sample in it saw; None where no sample fell into it."""

    name: str
    start_ns: int
    end_ns: int
    peak_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTimeline:
    """The samples of one process from its start to the end of its last repetition."""

    samples: Annotated[tuple[MemorySample, ...], Meta(min_length=1)]
    #: The kernel's own high-water mark, which sees what lies between samples.
    peak_rss_bytes: Count
    #: What the process had before it opened the model.
    base: MemorySample
    phases: tuple[MemoryPhase, ...]

    @property
    def largest(self) -> MemorySample:
        return max(self.samples, key=lambda sample: sample.rss_bytes)

    @property
    def steady(self) -> MemorySample:
        """The largest sample after loading, in the phases that compute; that of all where none of them has one."""
        start_ns = max((phase.end_ns for phase in self.phases if phase.name == "load"), default=0)
        later = [sample for sample in self.samples if sample.at_ns > start_ns]
        return max(later, key=lambda sample: sample.rss_bytes) if later else self.largest

    def thinned(self, n_samples: int) -> MemoryTimeline:
        """Return the same with no more than `n_samples`, evenly chosen: the first, the last and the largest stay."""
        kept = self.samples
        if len(kept) > n_samples:
            step = (len(kept) - 1) / (n_samples - 2)
            chosen = {round(at * step) for at in range(n_samples - 1)}
            chosen.add(kept.index(self.largest))
            kept = tuple(kept[at] for at in sorted(chosen))
        return replace(self, samples=kept)

    def to_plain(self) -> dict[str, Any]:
        return {**to_plain(self, rows=["samples"]), "base": self.base.to_plain()}

    @classmethod
    def from_plain(cls, plain: object) -> MemoryTimeline:
        """Build from what `to_plain` returned; anything else is a MeasurementError that names what is wrong."""
        try:
            base = from_row(plain["base"], MemorySample)  # type: ignore[index]
            return rebuilt({**plain, "base": base}, cls, samples=MemorySample)  # type: ignore[dict-item]
        except (ValueError, TypeError, KeyError) as error:
            raise MeasurementError(f"memory timeline: {error}; measure again") from error
