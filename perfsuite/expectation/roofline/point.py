"""A point on the roofline: work of known cost, done in a measured time, under its roof.

Relative Inference Potential: how far a point lies from the ridge of its roof.

Points of different regimes are never compared: the distance of one is to a corner, that of the other to a line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.survey import Regime, Roof, RoofRates
from perfsuite.expectation.roofline.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class InferencePotential:
    """The distance of a point from the ridge, which is what optimisation can still win; 0 is the ridge itself.

    *Source*: RooflineBench, section 3, 'Relative Inference Potential'.
    """

    regime: Regime
    #: On axes of log10, each divided by the ridge's value, so that both are pure numbers: decades. In the memory
    #: regime the Euclidean distance to the ridge, in the compute regime the vertical one to the peak.
    decades: float
    #: The paper's form: the same on the raw axes. Its memory form adds (FLOPs/byte)^2 to (FLOP/s)^2, so that FLOP/s
    #: alone decide it.
    literal: float


def inference_potential(operational_intensity: float, flops_per_s: float, roof: Roof) -> InferencePotential:
    """Return the distance of a point (FLOPs/byte, FLOP/s) from the ridge of its roof.

    With x = log10(intensity / ridge) and y = log10(rate / peak), the memory regime has sqrt(x^2 + y^2), the compute
    regime -y; the literal form has sqrt((ridge - intensity)^2 + (peak - rate)^2) and peak - rate.
    """
    regime = roof.regime(operational_intensity)
    below = math.log10(roof.peak_flops_per_s / flops_per_s)
    missing_flops_per_s = roof.peak_flops_per_s - flops_per_s
    if regime is Regime.COMPUTE:
        return InferencePotential(regime=regime, decades=below, literal=missing_flops_per_s)
    left = math.log10(roof.ridge_point / operational_intensity)
    literal = math.hypot(roof.ridge_point - operational_intensity, missing_flops_per_s)
    return InferencePotential(regime=regime, decades=math.hypot(left, below), literal=literal)


def nearest(potentials: Sequence[InferencePotential]) -> int:
    """Return the place of the point nearest to its ridge, among points of one regime.

    Raises PerfsuiteError: there is no point, or they are of both regimes.
    """
    regimes = {potential.regime for potential in potentials}
    if len(regimes) != 1:
        seen = " and ".join(sorted(regime.value for regime in regimes)) or "no point"
        raise PerfsuiteError(
            f"inference potential: points of {seen} cannot be compared; compare points of one regime only"
        )
    return min(range(len(potentials)), key=lambda place: potentials[place].decades)


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
