"""Relative Inference Potential: how far a point lies from the ridge of its roof.

Points of different regimes are never compared: the distance of one is to a corner, that of the other to a line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.roof import Regime, Roof


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
