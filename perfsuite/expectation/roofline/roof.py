"""A roof: what a peak and a bandwidth let any work attain."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


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
