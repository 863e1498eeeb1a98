"""Every step of a generation at once.

Each operator of a decode step is affine in the positions before it, so two steps tell all of them exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.dimensions import check_positive
from perfsuite.expectation.paper.passes import decode_pass
from perfsuite.expectation.paper.rotary import RopeReach
from perfsuite.expectation.paper.template import DEFAULT_LORA_RANK
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.variant import Variant

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

    @property
    def kv_bytes(self) -> Counts:
        """Bytes of the KV cache that are read and written."""
        return self.kv_read_bytes + self.kv_written_bytes

    def at(self, step: int) -> OpCost:
        """Cost of one step."""
        return OpCost(**{each.name: int(getattr(self, each.name)[step]) for each in fields(self)})


@dataclass(frozen=True, kw_only=True)
class DecodeSweep:
    """The decode steps of a generation."""

    #: Positions before each step.
    n_past: Counts
    #: Cost of each kind of operator, keys as in `PassCost.by_operator`.
    by_operator: Mapping[str, CostArrays] = field(hash=False)
    _ends: tuple[OpCost, OpCost] = field(repr=False)

    @cached_property
    def total(self) -> CostArrays:
        """All operators together."""
        return _line(*self._ends, len(self.n_past))


def decode_passes(
    architecture: Architecture,
    variant: Variant,
    n_past: int,
    n_steps: int,
    *,
    lora_rank: int = DEFAULT_LORA_RANK,
    rope: RopeReach = RopeReach.WHOLE_TABLE,
) -> DecodeSweep:
    """Cost `n_steps` decode steps, the first of which attends to `n_past` positions; see `decode_pass`."""
    check_positive(n_steps=n_steps)
    first, second = (
        decode_pass(architecture, variant, n_past + step, lora_rank=lora_rank, rope=rope) for step in (0, 1)
    )
    by_operator = {key: _line(cost, second.by_operator[key], n_steps) for key, cost in first.by_operator.items()}
    return DecodeSweep(
        n_past=np.arange(n_past, n_past + n_steps, dtype=np.int64),
        by_operator=MappingProxyType(by_operator),
        _ends=(first.total, second.total),
    )


def _line(first: OpCost, second: OpCost, n_steps: int) -> CostArrays:
    """Extend two neighbouring steps to all of them."""
    steps = np.arange(n_steps, dtype=np.int64)
    return CostArrays(
        **{
            each.name: getattr(first, each.name) + steps * (getattr(second, each.name) - getattr(first, each.name))
            for each in fields(CostArrays)
        }
    )
