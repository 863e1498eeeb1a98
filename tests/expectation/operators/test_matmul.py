"""Costs of matrix products."""

from __future__ import annotations

from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.matmul import bmm, dequantize_weights, linear, lora_update
from perfsuite.expectation.operators.number_format import BF16, NUMBER_FORMATS, NumberFormat

_SIDE = st.integers(1, 3000)
_FORMATS = st.sampled_from(sorted(NUMBER_FORMATS.values(), key=lambda each: each.name))


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        (linear(3, 5, 7, weights=BF16), OpCost(flops=210, read_bytes=100, written_bytes=42, parameter_bytes=70)),
        (dequantize_weights(5, 7), OpCost(flops=70, n_dispatches=0)),
        (lora_update(5, 7, 4), OpCost(flops=10 * 35, read_bytes=96, parameter_bytes=96, n_dispatches=0)),
        (
            bmm(8, 2, 3, 5, activations=BF16, right_bytes=11),
            OpCost(flops=480, read_bytes=2 * 8 * 2 * 3 + 11, written_bytes=160),
        ),
    ],
)
def test_a_product_costs_its_formula(cost: OpCost, expected: OpCost) -> None:
    """2 FLOPs a multiply-add; what is done to the weights happens in the dispatch of the product."""
    assert cost == expected


@given(_SIDE, _SIDE, _SIDE, _FORMATS)
def test_a_linear_operator_grows_with_each_side(m: int, k: int, n: int, weights: NumberFormat) -> None:
    """More of any dimension costs no less, and every count is a non-negative integer."""
    cost = linear(m, k, n, weights=weights)
    assert all(type(each) is int and each >= 0 for each in astuple(cost))
    for more in ((m + 1, k, n), (m, k + 1, n), (m, k, n + 1)):
        larger = linear(*more, weights=weights)
        assert all(one <= other for one, other in zip(astuple(cost), astuple(larger), strict=True))


@given(_SIDE, _SIDE, _SIDE, _SIDE)
def test_a_linear_operator_adds_up_over_rows(m: int, more: int, k: int, n: int) -> None:
    """Two chunks of rows compute what both together do, and read the parameters twice."""
    whole, *chunks = (linear(rows, k, n, weights=BF16) for rows in (m + more, m, more))
    parts = chunks[0] + chunks[1]
    assert parts.flops == whole.flops
    assert parts.read_bytes - parts.parameter_bytes == whole.read_bytes - whole.parameter_bytes
    assert parts.written_bytes == whole.written_bytes
    assert parts.parameter_bytes == 2 * whole.parameter_bytes


@given(st.integers(1, 64), _SIDE, _SIDE, _SIDE)
def test_a_batched_product_is_that_many_products(b: int, m: int, k: int, n: int) -> None:
    """b x (m, k) x (k, n) costs b linear operators without parameters, in one dispatch."""
    one = linear(m, k, n, weights=BF16)
    cost = bmm(b, m, k, n, activations=BF16, right_bytes=2 * b * k * n)
    products = (b * one.flops, b * one.read_bytes, b * one.written_bytes)
    assert (cost.flops, cost.read_bytes, cost.written_bytes) == products
    assert (cost.parameter_bytes, cost.n_dispatches) == (0, 1)
