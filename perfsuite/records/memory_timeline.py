"""What a process had in memory over its run, as samples and by phase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from perfsuite.errors import MeasurementError


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySample:
    """What of a process was resident at one moment, on the monotonic clock."""

    at_ns: int
    #: Memory that no file stands behind.
    anonymous_bytes: int
    #: Mapped files: libraries, and the weights of a model that is mapped.
    file_bytes: int
    #: Shared memory.
    shared_bytes: int

    @property
    def rss_bytes(self) -> int:
        """All that was resident."""
        return self.anonymous_bytes + self.file_bytes + self.shared_bytes

    def to_plain(self) -> list[int]:
        """Return the fields in their order."""
        return list(asdict(self).values())

    @classmethod
    def from_plain(cls, plain: object) -> MemorySample:
        """Build from what `to_plain` returned; anything else is a MeasurementError."""
        if not isinstance(plain, list | tuple) or len(plain) != 4 or not all(_is_count(value) for value in plain):
            raise MeasurementError(
                f"memory sample: expected a time in ns and three sizes, got {plain!r}; measure again"
            )
        at_ns, anonymous, file, shared = plain
        return cls(at_ns=at_ns, anonymous_bytes=anonymous, file_bytes=file, shared_bytes=shared)


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

    samples: tuple[MemorySample, ...]
    #: The kernel's own high-water mark, which sees what lies between samples.
    peak_rss_bytes: int
    #: What the process had before it opened the model.
    base: MemorySample
    phases: tuple[MemoryPhase, ...]

    @property
    def largest(self) -> MemorySample:
        """The sample with the most resident."""
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
        """Return the same as values that JSON has, a sample as a list of its fields."""
        return {
            "samples": [sample.to_plain() for sample in self.samples],
            "peak_rss_bytes": self.peak_rss_bytes,
            "base": self.base.to_plain(),
            "phases": [asdict(phase) for phase in self.phases],
        }

    @classmethod
    def from_plain(cls, plain: object) -> MemoryTimeline:
        """Build from what `to_plain` returned; anything else is a MeasurementError that names what is wrong."""
        names = {field.name for field in fields(cls)}
        if not isinstance(plain, Mapping) or set(plain) != names:
            raise MeasurementError(f"memory timeline: expected the fields {sorted(names)}; measure again")
        try:
            timeline = cls(
                samples=tuple(MemorySample.from_plain(row) for row in plain["samples"]),
                peak_rss_bytes=int(plain["peak_rss_bytes"]),
                base=MemorySample.from_plain(plain["base"]),
                phases=tuple(MemoryPhase(**each) for each in plain["phases"]),
            )
        except (TypeError, ValueError) as error:
            raise MeasurementError(f"memory timeline: {error}; measure again") from error
        if not timeline.samples:
            raise MeasurementError("memory timeline: samples is empty, expected at least one; measure again")
        return timeline


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
