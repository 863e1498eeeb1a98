"""Work under a roof: what it computes and moves by what decides how fast each part can go, and where it stands.

Relative Inference Potential: how far a point lies from the ridge of its roof. Points of different regimes are never
compared: the distance of one is to a corner, that of the other to a line.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby
from operator import attrgetter
from typing import Any

from perfsuite.errors import MeasurementError, PerfsuiteError
from perfsuite.records.case import CaseCost
from perfsuite.records.ceilings import Ceilings
from perfsuite.records.codec import Count
from perfsuite.workload.ggml_types import is_quantized


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


def memory_roof(ceilings: Ceilings) -> Roof:
    """Return the classical roof: 32-bit arithmetic over the bandwidth of the largest working set."""
    return Roof(peak_flops_per_s=ceilings.fp32_flops_per_s, bandwidth_bytes_per_s=ceilings.levels[-1][1])


#: The fields of a part that add up.
_AMOUNTS = ("flops", "stored_bytes", "least_stored_bytes", "most_stored_bytes", "activation_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkPart:
    """A part of one type of weights and one working set."""

    #: ggml's type of the weights, which decides the fastest arithmetic; ``f32`` where there are none.
    type: str
    flops: Count
    #: Bytes of parameters and of the KV cache, read and written.
    stored_bytes: Count
    #: The fewest and the most that they can be, where a router decides which experts are read.
    least_stored_bytes: Count
    most_stored_bytes: Count
    #: Bytes over which they are spread before one of them is read again.
    stored_set_bytes: Count
    #: Bytes of activations, and those that pass before one of them is read again.
    activation_bytes: Count
    activation_set_bytes: Count

    def __post_init__(self) -> None:
        """Refuse bytes beyond what routing allows."""
        if not self.least_stored_bytes <= self.stored_bytes <= self.most_stored_bytes:
            raise MeasurementError(f"stored_bytes is {self.stored_bytes}, expected from least to most")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One phase, whole run or class of operators."""

    parts: tuple[WorkPart, ...]
    #: Whether activations count as traffic. In a phase they pass through the caches and parameters and KV count alone,
    #: as RooflineBench has it; an operator may move nothing but activations.
    counts_activations: bool

    @property
    def flops(self) -> int:
        """All FLOPs."""
        return sum(part.flops for part in self.parts)

    @property
    def traffic_bytes(self) -> int:
        """The bytes that count; of routed experts as many as are expected."""
        return sum(part.stored_bytes + self._activation_bytes(part) for part in self.parts)

    @property
    def least_traffic_bytes(self) -> int:
        """The same if all tokens chose the same experts."""
        return sum(part.least_stored_bytes + self._activation_bytes(part) for part in self.parts)

    @property
    def most_traffic_bytes(self) -> int:
        """The same if tokens chose as many different experts as they can."""
        return sum(part.most_stored_bytes + self._activation_bytes(part) for part in self.parts)

    def roof(self, ceilings: Ceilings) -> Roof:
        """Return the roof over this mixture of types and working sets.

        peak = sum of FLOPs / sum of FLOPs over each type's fastest arithmetic; bandwidth = sum of bytes / sum of bytes
        over the fastest bandwidth of each working set. Both are what nothing can exceed, the harmonic means by share.
        """
        compute_s = sum(part.flops / fastest_flops_per_s(part.type, ceilings) for part in self.parts)
        memory_s = sum(self._memory_s(part, ceilings) for part in self.parts)
        traffic_bytes = self.traffic_bytes
        memory_bytes_per_s = ceilings.fastest_bandwidth_bytes_per_s(sys.maxsize)
        return Roof(
            peak_flops_per_s=self.flops / compute_s if compute_s else fastest_flops_per_s("f32", ceilings),
            bandwidth_bytes_per_s=traffic_bytes / memory_s if memory_s else memory_bytes_per_s,
        )

    def least_time_s(self, ceilings: Ceilings) -> float:
        """Return what nothing can undercut, s: max(FLOPs over the fastest arithmetic, bytes over the bandwidth).

        Of routed experts as few are read as can be, which may fit into a faster level.
        """
        compute_s = sum(part.flops / fastest_flops_per_s(part.type, ceilings) for part in self.parts)
        memory_s = sum(self._memory_s(_as_few_as_can_be(part), ceilings) for part in self.parts)
        return max(compute_s, memory_s)

    def _activation_bytes(self, part: WorkPart) -> int:
        return part.activation_bytes if self.counts_activations else 0

    def _memory_s(self, part: WorkPart, ceilings: Ceilings) -> float:
        stored_s = part.stored_bytes / ceilings.fastest_bandwidth_bytes_per_s(part.stored_set_bytes)
        activation_bytes = self._activation_bytes(part)
        return stored_s + activation_bytes / ceilings.fastest_bandwidth_bytes_per_s(part.activation_set_bytes)

    def __mul__(self, times: int) -> Work:
        """Do the same `times` times."""
        parts = (replace(part, **{name: getattr(part, name) * times for name in _AMOUNTS}) for part in self.parts)
        return Work(parts=tuple(parts), counts_activations=self.counts_activations)

    def __add__(self, other: Work) -> Work:
        """Do both."""
        return Work(parts=_joined((*self.parts, *other.parts)), counts_activations=self.counts_activations)


def work_of(costs: Sequence[CaseCost], *, counts_activations: bool) -> Work:
    """Return the work of a case's costs; activations that do not count are left out."""
    parts = [_part(cost) for cost in costs]
    if not counts_activations:
        parts = [replace(part, activation_bytes=0, activation_set_bytes=0) for part in parts]
    return Work(parts=_joined(parts), counts_activations=counts_activations)


def fastest_flops_per_s(type_name: str, ceilings: Ceilings) -> float:
    """Return the fastest arithmetic for weights of a ggml type.

    Quantised weights are multiplied as integers or as floats, halves as halves or as floats, floats as such.
    """
    f32, f16 = ceilings.fp32_flops_per_s, ceilings.f16_flops_per_s or 0.0
    if is_quantized(type_name):
        return max(f32, f16, ceilings.int8_flops_per_s or 0.0)
    return f32 if type_name.lower() == "f32" else max(f32, f16)


def _part(cost: CaseCost) -> WorkPart:
    total = cost.cost
    stored_bytes = total.parameter_bytes + total.kv_bytes
    activation_bytes = total.moved_bytes - stored_bytes
    passed_bytes = cost.activation_set_bytes
    return WorkPart(
        type=cost.type,
        flops=total.flops,
        stored_bytes=stored_bytes,
        least_stored_bytes=cost.floor_parameter_bytes + total.kv_bytes,
        most_stored_bytes=cost.ceiling_parameter_bytes + total.kv_bytes,
        stored_set_bytes=cost.working_set_bytes,
        activation_bytes=activation_bytes,
        activation_set_bytes=activation_bytes // max(1, total.n_dispatches) if passed_bytes is None else passed_bytes,
    )


def _joined(parts: Iterable[WorkPart]) -> tuple[WorkPart, ...]:
    key = attrgetter("type", "stored_set_bytes", "activation_set_bytes")
    groups = (tuple(group) for _, group in groupby(sorted(parts, key=key), key=key))
    return tuple(replace(alike[0], **{name: _total(alike, name) for name in _AMOUNTS}) for alike in groups)


def _total(parts: Sequence[WorkPart], name: str) -> Any:
    return sum(getattr(part, name) for part in parts)


def _as_few_as_can_be(part: WorkPart) -> WorkPart:
    """Return the part if its router always chose the same experts."""
    if part.least_stored_bytes == part.stored_bytes:
        return part
    set_bytes = part.stored_set_bytes * part.least_stored_bytes // part.stored_bytes
    return replace(part, stored_bytes=part.least_stored_bytes, stored_set_bytes=set_bytes)


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


def place(case: str, work: Work, time_ns: float, ceilings: Ceilings) -> Point:
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
