"""The cost of a forward pass."""

from __future__ import annotations

import pytest

from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.pass_cost import PassCost


def test_a_pass_costs_the_sum_of_its_operators() -> None:
    """The total adds every kind, and the shares of their FLOPs add to 1."""
    cost = PassCost(by_operator={"gemm": OpCost(flops=30, read_bytes=5), "softmax": OpCost(flops=10)})
    assert cost.total == OpCost(flops=40, read_bytes=5, n_dispatches=2)
    assert cost.flops_shares == {"gemm": pytest.approx(0.75), "softmax": pytest.approx(0.25)}


def test_a_pass_without_flops_has_shares_of_nothing() -> None:
    """A pass that only moves bytes divides by no zero."""
    assert PassCost(by_operator={"copy": OpCost(read_bytes=5)}).flops_shares == {"copy": 0.0}
