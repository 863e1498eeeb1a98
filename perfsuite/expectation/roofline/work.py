"""What a piece of work computes and moves, by what decides how fast each part of it can go."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from perfsuite.errors import MeasurementError
from perfsuite.expectation.roofline.survey import Roof, RoofRates
from perfsuite.records.case import CaseCost
from perfsuite.records.codec import Count
from perfsuite.workload.ggml_types import is_quantized

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

    def roof(self, ceilings: RoofRates) -> Roof:
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

    def least_time_s(self, ceilings: RoofRates) -> float:
        """Return what nothing can undercut, s: max(FLOPs over the fastest arithmetic, bytes over the bandwidth).

        Of routed experts as few are read as can be, which may fit into a faster level.
        """
        compute_s = sum(part.flops / fastest_flops_per_s(part.type, ceilings) for part in self.parts)
        memory_s = sum(self._memory_s(_as_few_as_can_be(part), ceilings) for part in self.parts)
        return max(compute_s, memory_s)

    def _activation_bytes(self, part: WorkPart) -> int:
        return part.activation_bytes if self.counts_activations else 0

    def _memory_s(self, part: WorkPart, ceilings: RoofRates) -> float:
        stored_s = part.stored_bytes / ceilings.fastest_bandwidth_bytes_per_s(part.stored_set_bytes)
        activation_bytes = self._activation_bytes(part)
        return stored_s + activation_bytes / ceilings.fastest_bandwidth_bytes_per_s(part.activation_set_bytes)

    def __mul__(self, times: int) -> Work:
        """Do the same `times` times."""
        return Work(parts=tuple(_times(part, times) for part in self.parts), counts_activations=self.counts_activations)

    def __add__(self, other: Work) -> Work:
        """Do both."""
        return Work(parts=_joined((*self.parts, *other.parts)), counts_activations=self.counts_activations)


def work_of(costs: Sequence[CaseCost], *, counts_activations: bool) -> Work:
    """Return the work of a case's costs; activations that do not count are left out."""
    parts = [_part(cost) for cost in costs]
    if not counts_activations:
        parts = [replace(part, activation_bytes=0, activation_set_bytes=0) for part in parts]
    return Work(parts=_joined(parts), counts_activations=counts_activations)


def fastest_flops_per_s(type_name: str, ceilings: RoofRates) -> float:
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
    """Join parts of one type and working set."""

    def key(part: WorkPart) -> tuple[str, int, int]:
        return part.type, part.stored_set_bytes, part.activation_set_bytes

    groups = groupby(sorted(parts, key=key), key=key)
    return tuple(_together(tuple(group)) for _, group in groups)


def _together(alike: Sequence[WorkPart]) -> WorkPart:
    return _with_amounts(alike[0], lambda name: sum(getattr(part, name) for part in alike))


def _as_few_as_can_be(part: WorkPart) -> WorkPart:
    """Return the part if its router always chose the same experts."""
    if part.least_stored_bytes == part.stored_bytes:
        return part
    set_bytes = part.stored_set_bytes * part.least_stored_bytes // part.stored_bytes
    return replace(part, stored_bytes=part.least_stored_bytes, stored_set_bytes=set_bytes)


def _times(part: WorkPart, times: int) -> WorkPart:
    return _with_amounts(part, lambda name: getattr(part, name) * times)


def _with_amounts(part: WorkPart, amount: Callable[[str], int]) -> WorkPart:
    """Return work of the same type and working sets, with other FLOPs and bytes."""
    amounts: dict[str, Any] = {name: amount(name) for name in _AMOUNTS}
    return replace(part, **amounts)
