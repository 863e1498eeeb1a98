"""The decode steps of a generation, by what is computed in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

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
    return StepCosts(
        by_operator={name: _arrays([each.by_operator.get(name, NO_COST) for each in passes], which) for name in names}
    )


def _arrays(costs: Sequence[OpCost], which: Counts) -> CostArrays:
    return CostArrays(
        **{name: np.array([getattr(cost, name) for cost in costs], dtype=np.int64)[which] for name in COST_FIELDS}
    )
