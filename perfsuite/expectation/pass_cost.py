"""The cost of one forward pass, by what is computed in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from perfsuite.expectation.op_cost import NO_COST, OpCost


@dataclass(frozen=True, kw_only=True)
class PassCost:
    """One forward pass: a whole prompt, a chunk of it, or one decode step."""

    #: Cost of each kind of operator, such as ``gemm``, ``bmm`` and ``softmax``; read-only, in order of first use.
    by_operator: Mapping[str, OpCost] = field(hash=False)

    @cached_property
    def total(self) -> OpCost:
        """All operators together."""
        return sum(self.by_operator.values(), start=NO_COST)

    @property
    def flops_shares(self) -> dict[str, float]:
        """Share of each kind of operator in the FLOPs, 0 to 1."""
        flops = self.total.flops
        return {name: (cost.flops / flops if flops else 0.0) for name, cost in self.by_operator.items()}
