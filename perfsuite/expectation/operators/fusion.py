"""Operator fusion: bytes between fused operators vanish, operations stay, and one dispatch does for both."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.dimensions import check_count


def fused(first: OpCost, second: OpCost, between_bytes: int) -> OpCost:
    """Fuse two operators of which the second reads `between_bytes` that the first writes.

    The bytes are neither written nor read any more, and the dispatches are one fewer. Raises ArchitectureError where
    the first does not write, or the second does not read, that much beside parameters and KV cache.
    *Source*: LIFE, operator fusion.
    """
    return kept_on_chip(first, written_bytes=between_bytes) + kept_on_chip(
        second, read_bytes=between_bytes, n_dispatches=min(1, first.n_dispatches, second.n_dispatches)
    )


def kept_on_chip(cost: OpCost, *, read_bytes: int = 0, written_bytes: int = 0, n_dispatches: int = 0) -> OpCost:
    """Return the operator without some of its traffic and dispatches, operations unchanged."""
    check_count(read_bytes=read_bytes, written_bytes=written_bytes, n_dispatches=n_dispatches)
    _check("read_bytes", read_bytes, cost.read_bytes - cost.parameter_bytes - cost.kv_read_bytes)
    _check("written_bytes", written_bytes, cost.written_bytes - cost.kv_written_bytes)
    _check("n_dispatches", n_dispatches, cost.n_dispatches)
    return replace(
        cost,
        read_bytes=cost.read_bytes - read_bytes,
        written_bytes=cost.written_bytes - written_bytes,
        n_dispatches=cost.n_dispatches - n_dispatches,
    )


def _check(field: str, value: int, limit: int) -> None:
    if value > limit:
        raise ArchitectureError(f"{field} kept on chip is {value}, expected at most {limit}, which the operator moves")
