"""Costs of matrix products."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.matmul import (
    bmm,
    dequantize_weights,
    linear,
    lora_linear,
    lora_update,
    quantized_linear,
)
from perfsuite.expectation.operators.number_format import NUMBER_FORMATS, NumberFormat, find_format

_SIDE = st.integers(1, 3000)
_FORMATS = st.sampled_from(sorted(NUMBER_FORMATS.values(), key=lambda each: each.name))
_INT4 = find_format("int4")


def counts(cost: OpCost) -> tuple[int, ...]:
    """Every field of a cost."""
    return (
        *(cost.flops, cost.read_bytes, cost.written_bytes, cost.parameter_bytes),
        *(cost.kv_read_bytes, cost.kv_written_bytes, cost.n_dispatches),
    )


def grows(less: OpCost, more: OpCost) -> bool:
    """Whether no field of the second is smaller."""
    return all(one <= other for one, other in zip(counts(less), counts(more), strict=True))


def test_a_linear_operator_is_the_formula() -> None:
    """2mkn + mn FLOPs; mk + kn + n elements read, mn written, of two bytes each."""
    cost = linear(3, 5, 7, bias=True)
    assert cost == OpCost(flops=231, read_bytes=2 * (15 + 35 + 7), written_bytes=42, parameter_bytes=84)


@given(_SIDE, _SIDE, _SIDE, _FORMATS, st.booleans())
def test_a_linear_operator_grows_with_each_side(m: int, k: int, n: int, weights: NumberFormat, bias: bool) -> None:
    """More of any dimension costs no less, and every count is a non-negative integer."""
    cost = quantized_linear(m, k, n, weights=weights, bias=bias)
    assert all(type(each) is int and each >= 0 for each in counts(cost))
    for more in ((m + 1, k, n), (m, k + 1, n), (m, k, n + 1)):
        assert grows(cost, quantized_linear(*more, weights=weights, bias=bias))


@given(_SIDE, _SIDE, _SIDE, _SIDE)
def test_a_linear_operator_adds_up_over_rows(m: int, more: int, k: int, n: int) -> None:
    """Two chunks of rows compute what both together do, and read the parameters twice."""
    whole, parts = linear(m + more, k, n, bias=True), linear(m, k, n, bias=True) + linear(more, k, n, bias=True)
    assert parts.flops == whole.flops
    assert parts.read_bytes - parts.parameter_bytes == whole.read_bytes - whole.parameter_bytes
    assert parts.written_bytes == whole.written_bytes
    assert parts.parameter_bytes == 2 * whole.parameter_bytes


@given(_SIDE, _SIDE, _SIDE)
def test_dequantising_costs_two_operations_a_weight(m: int, k: int, n: int) -> None:
    """Quantised weights add 2kn FLOPs whatever m, in the same dispatch."""
    product = linear(m, k, n, weights=_INT4)
    assert quantized_linear(m, k, n, weights=_INT4) == product + dequantize_weights(k, n)
    assert quantized_linear(m, k, n, weights=_INT4).flops - product.flops == 2 * k * n
    assert quantized_linear(m, k, n, weights=find_format("bf16")) == linear(m, k, n)


@given(_SIDE, _SIDE, _SIDE, st.integers(1, 256))
def test_an_inline_adapter_adds_its_update(m: int, k: int, n: int, rank: int) -> None:
    """(2r + 2)kn FLOPs and A and B read, at each call; merged, nothing."""
    bare = quantized_linear(m, k, n, weights=_INT4)
    inline = lora_linear(m, k, n, rank, weights=_INT4)
    assert inline.flops - bare.flops == (2 * rank + 2) * k * n
    assert inline.read_bytes - bare.read_bytes == 2 * rank * (k + n)
    assert inline.n_dispatches == bare.n_dispatches
    assert lora_linear(m, k, n, rank, weights=_INT4, merged=True) == bare


@given(st.integers(1, 64), _SIDE, _SIDE, _SIDE)
def test_a_batched_product_is_that_many_products(b: int, m: int, k: int, n: int) -> None:
    """b x (m, k) x (k, n) costs b linear operators without parameters, in one dispatch."""
    one = linear(m, k, n)
    cost = bmm(b, m, k, n)
    assert (cost.flops, cost.read_bytes, cost.written_bytes) == (
        b * one.flops,
        b * one.read_bytes,
        b * one.written_bytes,
    )
    assert (cost.parameter_bytes, cost.n_dispatches) == (0, 1)
    for more in ((b + 1, m, k, n), (b, m + 1, k, n), (b, m, k + 1, n), (b, m, k, n + 1)):
        assert grows(cost, bmm(*more))


def test_a_shared_operand_is_read_at_its_own_size() -> None:
    """What the right-hand side takes replaces the bkn elements that are read."""
    assert bmm(8, 2, 3, 5, right_bytes=11).read_bytes == 2 * 8 * 2 * 3 + 11


@pytest.mark.parametrize("field", ["m", "k", "n"])
@pytest.mark.parametrize("value", [0, -1])
def test_no_side_may_be_empty(field: str, value: int) -> None:
    """Zero and negative dimensions are refused by name."""
    sides = {"m": 1, "k": 1, "n": 1, field: value}
    for operator in (linear, lambda **kwargs: bmm(1, **kwargs)):
        with pytest.raises(ArchitectureError, match=f"{field} is {value}, expected a positive integer"):
            operator(**sides)


def test_an_adapter_has_a_rank() -> None:
    """A rank of zero is refused."""
    with pytest.raises(ArchitectureError, match="rank is 0"):
        lora_update(4, 4, 0)
