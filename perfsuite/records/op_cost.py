"""What an operator, or a whole pass of them, must compute and move, whatever convention counted it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property


@dataclass(frozen=True, slots=True, kw_only=True)
class OpCost:
    """What an operator must compute and move.

    1 multiply-accumulate is 2 FLOPs. Parameter and KV bytes are parts of what is read and written, not more of it.
    """

    flops: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    #: The part of `read_bytes` that is parameters of the model.
    parameter_bytes: int = 0
    #: The part of `read_bytes` that is the KV cache.
    kv_read_bytes: int = 0
    #: The part of `written_bytes` that goes into the KV cache.
    kv_written_bytes: int = 0
    n_dispatches: int = 1

    @property
    def moved_bytes(self) -> int:
        return self.read_bytes + self.written_bytes

    @property
    def kv_bytes(self) -> int:
        return self.kv_read_bytes + self.kv_written_bytes

    def __add__(self, other: OpCost) -> OpCost:
        return OpCost(**{name: getattr(self, name) + getattr(other, name) for name in COST_FIELDS})

    def __mul__(self, times: int) -> OpCost:
        return OpCost(**{name: getattr(self, name) * times for name in COST_FIELDS})


COST_FIELDS = tuple(each.name for each in fields(OpCost))
NO_COST = OpCost(n_dispatches=0)


@dataclass(frozen=True, kw_only=True)
class PassCost:
    """One forward pass: a whole prompt, a chunk of it, or one decode step."""

    #: Cost of each kind of operator, such as ``gemm``, ``bmm`` and ``softmax``; read-only, in order of first use.
    by_operator: Mapping[str, OpCost] = field(hash=False)

    @cached_property
    def total(self) -> OpCost:
        return sum(self.by_operator.values(), start=NO_COST)

    @property
    def flops_shares(self) -> dict[str, float]:
        """Share of each kind of operator in the FLOPs, 0 to 1."""
        flops = self.total.flops
        return {name: (cost.flops / flops if flops else 0.0) for name, cost in self.by_operator.items()}
