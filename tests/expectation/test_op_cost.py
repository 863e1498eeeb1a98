"""Sums and multiples of costs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from perfsuite.expectation.op_cost import NO_COST, OpCost

_COUNT = st.integers(0, 1 << 40)
_COSTS = st.builds(
    OpCost,
    flops=_COUNT,
    read_bytes=_COUNT,
    written_bytes=_COUNT,
    parameter_bytes=_COUNT,
    kv_read_bytes=_COUNT,
    kv_written_bytes=_COUNT,
    n_dispatches=_COUNT,
)


@given(_COSTS, _COSTS)
def test_costs_add_up_in_any_order(one: OpCost, other: OpCost) -> None:
    """Addition commutes and nothing is lost with no cost."""
    assert one + other == other + one
    assert one + NO_COST == one


@given(_COSTS, st.integers(0, 5))
def test_a_multiple_is_a_repeated_sum(cost: OpCost, times: int) -> None:
    """Three times a cost is the cost added three times."""
    assert cost * times == sum([cost] * times, start=NO_COST)


@given(_COSTS)
def test_traffic_is_what_is_read_and_written(cost: OpCost) -> None:
    """Moved bytes and bytes of the cache are sums of both directions."""
    assert cost.moved_bytes == cost.read_bytes + cost.written_bytes
    assert cost.kv_bytes == cost.kv_read_bytes + cost.kv_written_bytes
