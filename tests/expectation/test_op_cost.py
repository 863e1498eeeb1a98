"""Sums and multiples of costs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.expectation.op_cost import COST_FIELDS, NO_COST, OpCost, PassCost


def test_a_pass_costs_the_sum_of_its_operators() -> None:
    """The total adds every kind, and the shares of their FLOPs add to 1, or are nothing where only bytes move."""
    cost = PassCost(by_operator={"gemm": OpCost(flops=30, read_bytes=5), "softmax": OpCost(flops=10)})
    assert cost.total == OpCost(flops=40, read_bytes=5, n_dispatches=2)
    assert cost.flops_shares == {"gemm": pytest.approx(0.75), "softmax": pytest.approx(0.25)}
    assert PassCost(by_operator={"copy": OpCost(read_bytes=5)}).flops_shares == {"copy": 0.0}


_COUNT = st.integers(0, 1 << 40)
_COSTS = st.builds(OpCost, **dict.fromkeys(COST_FIELDS, _COUNT))


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
