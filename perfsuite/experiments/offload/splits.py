"""Speed, splits and refusals against the number of layers that a device computes."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from perfsuite.records.events import GRAPH_PHASES, Phase
from perfsuite.trace.placement import Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Tokens per second in each of some processes."""

    phase: Phase
    samples_tokens_per_s: tuple[float, ...]

    @property
    def median_tokens_per_s(self) -> float:
        """The middle of the processes."""
        return median(self.samples_tokens_per_s)

    @property
    def least_tokens_per_s(self) -> float:
        """The slowest process."""
        return min(self.samples_tokens_per_s)

    @property
    def most_tokens_per_s(self) -> float:
        """The fastest process."""
        return max(self.samples_tokens_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadPoint:
    """What was seen with one number of layers on the device."""

    n_gpu_layers: int
    speeds: tuple[Speed, ...]
    placements: tuple[Placement, ...]
    #: Processes that had competition, whose speeds are left out.
    n_disturbed: int

    def speed(self, phase: Phase) -> Speed | None:
        """Return the speed of a phase; None where it was not run."""
        return next((each for each in self.speeds if each.phase is phase), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadSweep:
    """All points, in the order in which they were asked for."""

    engine_version: str
    points: tuple[OffloadPoint, ...]

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases whose speed is reported."""
        return tuple(phase for phase in GRAPH_PHASES if any(point.speed(phase) for point in self.points))

    def fastest(self, phase: Phase) -> OffloadPoint | None:
        """Return the point with the highest median speed; None where the phase was not run."""
        ran = [(speed.median_tokens_per_s, point) for point in self.points if (speed := point.speed(phase)) is not None]
        return max(ran, key=lambda each: each[0])[1] if ran else None
