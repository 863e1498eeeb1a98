"""A point on the roofline: work of known cost, done in a measured time, under its roof."""

from __future__ import annotations

from dataclasses import dataclass

from perfsuite.expectation.roofline.potential import InferencePotential, inference_potential
from perfsuite.expectation.roofline.roof import Regime, Roof
from perfsuite.expectation.roofline.survey import RoofRates
from perfsuite.expectation.roofline.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Where a phase, a whole run or a class of operators stands."""

    case: str
    flops: int
    #: Bytes of parameters and of the KV cache, read and written; of operators, activations as well.
    traffic_bytes: int
    time_ns: float
    #: Over this point's own types and working sets.
    roof: Roof
    #: The intensities that routing allows, from the most experts read to the fewest; both alike without experts.
    least_intensity: float
    most_intensity: float
    #: The time that the ceilings allow if routing reads as few experts as it can, ns.
    least_time_ns: float

    @property
    def limit(self) -> Regime:
        """What decides the least time: the regime at the highest intensity that routing allows."""
        return self.roof.regime(self.most_intensity)

    @property
    def operational_intensity(self) -> float:
        """OI = W / Q, FLOPs per byte."""
        return self.flops / self.traffic_bytes

    @property
    def flops_per_s(self) -> float:
        """P = W / T."""
        return self.flops / self.time_ns * 1e9

    @property
    def attainable_flops_per_s(self) -> float:
        """The roof over the point's intensity."""
        return self.roof.attainable_flops_per_s(self.operational_intensity)

    @property
    def attainable_ratio(self) -> float:
        """The share of the attainable rate that was measured, by the intensity to be expected."""
        return self.flops_per_s / self.attainable_flops_per_s

    @property
    def ceiling_ratio(self) -> float:
        """The share of what nothing can exceed: the least time over the time."""
        return self.least_time_ns / self.time_ns

    @property
    def mbu_ratio(self) -> float:
        """Memory bandwidth utilisation: traffic / time / bandwidth."""
        return self.traffic_bytes / self.time_ns * 1e9 / self.roof.bandwidth_bytes_per_s

    @property
    def mfu_ratio(self) -> float:
        """Model FLOPs utilisation: rate / peak."""
        return self.flops_per_s / self.roof.peak_flops_per_s

    @property
    def regime(self) -> Regime:
        """What limits the point."""
        return self.roof.regime(self.operational_intensity)

    @property
    def potential(self) -> InferencePotential:
        """The distance from the ridge; compared within a regime only."""
        return inference_potential(self.operational_intensity, self.flops_per_s, self.roof)


def place(case: str, work: Work, time_ns: float, ceilings: RoofRates) -> Point:
    """Place work that took `time_ns` under the ceilings of the device that did it.

    Work without FLOPs or bytes (a gather of rows, an empty operator) has no place: the caller leaves it out.
    """
    return Point(
        case=case,
        flops=work.flops,
        traffic_bytes=work.traffic_bytes,
        time_ns=time_ns,
        roof=work.roof(ceilings),
        least_intensity=work.flops / work.most_traffic_bytes,
        most_intensity=work.flops / work.least_traffic_bytes,
        least_time_ns=work.least_time_s(ceilings) * 1e9,
    )
