"""Measured memory beside the predicted, and what the prediction leaves unexplained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

from perfsuite.errors import MeasurementError
from perfsuite.expectation.memory.need import MemoryNeed
from perfsuite.records.codec import Count, from_plain, to_plain
from perfsuite.records.memory_timeline import MemoryTimeline

#: Samples that a stored record keeps at the most.
STORED_SAMPLES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryGap:
    """A measured amount against a predicted one."""

    measured_bytes: int
    predicted_bytes: int

    @property
    def unexplained_bytes(self) -> int:
        """Measured less predicted; below 0 where less was seen than predicted."""
        return self.measured_bytes - self.predicted_bytes

    @property
    def unexplained_ratio(self) -> float | None:
        """The unexplained rest as a share of what was measured; None where nothing was."""
        return self.unexplained_bytes / self.measured_bytes if self.measured_bytes else None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord:
    """What one process of a workload took, and what it was predicted to take."""

    weights: str
    scenario: str
    need: MemoryNeed
    timeline: MemoryTimeline
    #: Memory of the GPU that the driver says the process had; None with the reason where none is reported.
    vram_bytes: int | None
    vram_missing: str = ""

    @property
    def peak(self) -> MemoryGap:
        """The peak of the resident size, against the base and the predicted peak."""
        return MemoryGap(
            measured_bytes=self.timeline.peak_rss_bytes,
            predicted_bytes=self.timeline.base.rss_bytes + self.need.peak_bytes,
        )

    @property
    def anonymous(self) -> MemoryGap:
        """What no file stands behind, while the run computes."""
        return MemoryGap(
            measured_bytes=self.timeline.steady.anonymous_bytes,
            predicted_bytes=self.timeline.base.anonymous_bytes + self.need.anonymous_bytes,
        )

    @property
    def file(self) -> MemoryGap:
        """Mapped files, while the run computes."""
        return MemoryGap(
            measured_bytes=self.timeline.steady.file_bytes,
            predicted_bytes=self.timeline.base.file_bytes + self.need.weights_mapped_bytes,
        )

    def to_plain(self) -> dict[str, Any]:
        """Return the same as values that JSON has, with no more than `STORED_SAMPLES` samples."""
        return {
            "weights": self.weights,
            "scenario": self.scenario,
            "need": to_plain(self.need),
            "timeline": self.timeline.thinned(STORED_SAMPLES).to_plain(),
            "vram_bytes": self.vram_bytes,
            "vram_missing": self.vram_missing,
        }

    @classmethod
    def from_plain(cls, plain: object) -> MemoryRecord:
        """Build from what `to_plain` returned; anything else is a MeasurementError that names what is wrong."""
        values: Any = from_plain(plain, _Plain, "memory record", MeasurementError, "measure again", is_closed=True)
        return cls(**{**values, "timeline": MemoryTimeline.from_plain(values["timeline"])})


class _Plain(TypedDict):
    weights: str
    scenario: str
    need: MemoryNeed
    timeline: dict[str, Any]
    vram_bytes: Count | None
    vram_missing: str
