"""Operator fusion: bytes between fused operators vanish, operations stay, and one dispatch does for both."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.expectation.op_cost import OpCost


def kept_on_chip(cost: OpCost, *, read_bytes: int = 0, written_bytes: int = 0, n_dispatches: int = 0) -> OpCost:
    """Return the operator without some of its traffic and dispatches, operations unchanged."""
    return replace(
        cost,
        read_bytes=cost.read_bytes - read_bytes,
        written_bytes=cost.written_bytes - written_bytes,
        n_dispatches=cost.n_dispatches - n_dispatches,
    )
