"""LIFE's formulas: from what passes compute and move, and what a device gives, to seconds.

    t_c = sum ops / (ec TOPS) + sum t_dispatch        t_m = sum bytes / (em BW) + sum t_dispatch

Sums run over the operators of a pass, or of each decode step of a generation. *Source*: LIFE, section 3.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perfsuite.errors import PerfsuiteError
from perfsuite.records.op_cost import COST_FIELDS, NO_COST, OpCost, PassCost

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class CostArrays:
    """The fields of an OpCost, each over the steps."""

    flops: Counts
    read_bytes: Counts
    written_bytes: Counts
    parameter_bytes: Counts
    kv_read_bytes: Counts
    kv_written_bytes: Counts
    n_dispatches: Counts

    @property
    def moved_bytes(self) -> Counts:
        """Bytes read and written."""
        return self.read_bytes + self.written_bytes

    def at(self, step: int) -> OpCost:
        """Cost of one step."""
        return OpCost(**{name: int(getattr(self, name)[step]) for name in COST_FIELDS})


@dataclass(frozen=True, kw_only=True, eq=False)
class StepCosts:
    """Costs of all steps at once, arrays of one element a step."""

    #: Cost of each kind of operator, keys as in `PassCost.by_operator`.
    by_operator: Mapping[str, CostArrays]

    @cached_property
    def total(self) -> CostArrays:
        """All operators together."""
        costs = self.by_operator.values()
        return CostArrays(**{name: sum(getattr(cost, name) for cost in costs) for name in COST_FIELDS})

    @property
    def n_steps(self) -> int:
        """The number of steps."""
        return len(self.total.flops)

    def at(self, step: int) -> PassCost:
        """Return one step; negative ones count from the end."""
        return PassCost(by_operator={name: cost.at(step) for name, cost in self.by_operator.items()})

    def mean(self) -> PassCost:
        """Return the mean step, each of its numbers rounded to an integer."""
        return PassCost(
            by_operator={
                name: OpCost(**{each: round(float(getattr(cost, each).mean())) for each in COST_FIELDS})
                for name, cost in self.by_operator.items()
            }
        )


def expanded(passes: Sequence[PassCost], which: Counts) -> StepCosts:
    """Return the steps of which step i is ``passes[which[i]]``; an operator that a pass lacks costs nothing in it."""
    names = dict.fromkeys(name for each in passes for name in each.by_operator)
    by_operator = {}
    for name in names:
        costs = [each.by_operator.get(name, NO_COST) for each in passes]
        fields = {each: np.array([getattr(cost, each) for cost in costs], dtype=np.int64) for each in COST_FIELDS}
        by_operator[name] = CostArrays(**{each: values[which] for each, values in fields.items()})
    return StepCosts(by_operator=by_operator)


#: Operations a second in one TOPS.
OPS_PER_TOPS = 1e12
#: Bytes a second in one GB/s: bandwidths are decimal, unlike sizes.
BYTES_PER_GB = 1e9
#: Seconds in one microsecond.
S_PER_US = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRates:
    """One device as LIFE's formulas see it; a value that no device has is a PerfsuiteError by its option's name."""

    #: Operations a second, of which a multiply-add is two.
    peak_flops_per_s: float
    bandwidth_bytes_per_s: float
    #: The share of the peaks that every operator reaches.
    compute_efficiency_ratio: float = 1.0
    memory_efficiency_ratio: float = 1.0
    #: What issuing one operator adds.
    dispatch_s: float = 0.0
    #: Power while it computes; None where it is not known.
    power_w: float | None = None

    def __post_init__(self) -> None:
        """Refuse shares, rates, times and powers that no device has."""
        most, share = sys.float_info.max, "a share above 0 and up to 1"
        for option, value, limit, accepted in (
            ("--compute-efficiency", self.compute_efficiency_ratio, 1.0, share),
            ("--memory-efficiency", self.memory_efficiency_ratio, 1.0, share),
            ("--tops", self.peak_flops_per_s / OPS_PER_TOPS, most, "TOPS above 0"),
            ("--bandwidth", self.bandwidth_bytes_per_s / BYTES_PER_GB, most, "GB/s above 0"),
            ("--power-w", 1.0 if self.power_w is None else self.power_w, most, "watts above 0"),
        ):
            if not 0.0 < value <= limit:
                raise PerfsuiteError(f"{option}={value:g}: expected {accepted}")
        if not 0.0 <= self.dispatch_s <= most:
            raise PerfsuiteError(f"--dispatch-us={self.dispatch_s / S_PER_US:g}: expected microseconds, 0 or more")


def rates_of(
    *,
    tops: float,
    bandwidth_gb_per_s: float,
    compute_efficiency: float = 1.0,
    memory_efficiency: float = 1.0,
    dispatch_us: float = 0.0,
    power_w: float | None = None,
) -> DeviceRates:
    """Build rates from the units of data sheets: TOPS of 1e12 operations a second, GB/s of 1e9 bytes a second."""
    return DeviceRates(
        peak_flops_per_s=tops * OPS_PER_TOPS,
        bandwidth_bytes_per_s=bandwidth_gb_per_s * BYTES_PER_GB,
        compute_efficiency_ratio=compute_efficiency,
        memory_efficiency_ratio=memory_efficiency,
        dispatch_s=dispatch_us * S_PER_US,
        power_w=power_w,
    )


Floats = NDArray[np.float64]
#: What is counted of an operator or a pass: integers for one, arrays of integers for many.
Counted = OpCost | CostArrays


class Bound(Enum):
    """What a pass waits for."""

    COMPUTE = "compute"
    MEMORY = "memory"


class Conventions(Enum):
    """Who counts: llama.cpp's own graph, or the paper's template."""

    ENGINE = "engine"
    PAPER = "paper"


@dataclass(frozen=True, kw_only=True, eq=False)
class PassTimes:
    """The times of one pass or of many at once, seconds; arrays of one shape, ``()`` for one pass on one device."""

    #: t_c and t_m; each holds the dispatches as well.
    compute_s: Floats
    memory_s: Floats
    #: The part of either that is dispatches.
    dispatch_s: Floats

    @property
    def longer_s(self) -> Floats:
        """max(t_c, t_m), which of the prefill is the time to the first token. *Source*: LIFE, section 3."""
        return np.maximum(self.compute_s, self.memory_s)

    @property
    def ratio(self) -> Floats:
        """t_c / t_m; above 1 compute bounds."""
        return self.compute_s / self.memory_s

    @property
    def bound(self) -> Bound:
        """What the passes wait for, all together."""
        return Bound.COMPUTE if self.compute_s.sum() > self.memory_s.sum() else Bound.MEMORY

    def mean(self) -> PassTimes:
        """Return the mean over all passes."""
        return self._each(lambda part: part.mean())

    def at(self, place: int) -> PassTimes:
        """Return one pass of many."""
        return self._each(lambda part: part[place])

    def _each(self, chosen: Callable[[Floats], Any]) -> PassTimes:
        compute, memory, dispatch = map(chosen, (self.compute_s, self.memory_s, self.dispatch_s))
        return PassTimes(compute_s=np.asarray(compute), memory_s=np.asarray(memory), dispatch_s=np.asarray(dispatch))


def pass_times(by_operator: Mapping[str, Counted], rates: DeviceRates) -> PassTimes:
    """Time passes on one device, from the cost of each kind of operator in them.

    The costs are integers (one pass) or arrays of one shape (as many passes), and so are the times.
    """
    zero: Any = np.float64(0.0)
    compute_s, memory_s, dispatch_s = zero, zero, zero
    for cost in by_operator.values():
        compute_s = compute_s + cost.flops / (rates.compute_efficiency_ratio * rates.peak_flops_per_s)
        memory_s = memory_s + cost.moved_bytes / (rates.memory_efficiency_ratio * rates.bandwidth_bytes_per_s)
        dispatch_s = dispatch_s + cost.n_dispatches * rates.dispatch_s
    return PassTimes(
        compute_s=np.asarray(compute_s + dispatch_s),
        memory_s=np.asarray(memory_s + dispatch_s),
        dispatch_s=np.asarray(dispatch_s),
    )


def forecast_grid(
    cost: OpCost,
    *,
    peak_flops_per_s: ArrayLike,
    bandwidth_bytes_per_s: ArrayLike,
    compute_efficiency_ratio: ArrayLike = 1.0,
    memory_efficiency_ratio: ArrayLike = 1.0,
) -> PassTimes:
    """Time one pass on every device of a grid, without dispatches.

    The rates broadcast against each other: peaks of shape (n, 1) and bandwidths of shape (m,) give times of shape
    (n, m). The formulas are those of `pass_times`. *Source*: LIFE, Fig. 4 and 5.
    """
    compute_s, memory_s = np.broadcast_arrays(
        cost.flops / np.multiply(compute_efficiency_ratio, peak_flops_per_s),
        cost.moved_bytes / np.multiply(memory_efficiency_ratio, bandwidth_bytes_per_s),
    )
    return PassTimes(compute_s=compute_s, memory_s=memory_s, dispatch_s=np.zeros_like(compute_s))


def tpot_s(times: PassTimes, conventions: Conventions) -> Floats:
    """Return the time per output token, of each decode step.

    The paper takes t_m alone (it prints the inverse, BW em / MEM). Under the engine's conventions a step takes
    max(t_c, t_m), as any pass does. *Source*: LIFE, section 3.
    """
    return times.memory_s if conventions is Conventions.PAPER else times.longer_s
