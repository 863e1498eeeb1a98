"""Costs of operators that treat every element alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.number_format import NUMBER_FORMATS, NumberFormat, find_format
from perfsuite.expectation.operators.pointwise import (
    dequantize,
    elementwise,
    inverse,
    inverse_square_root,
    piecewise_linear,
    polynomial,
    quantize,
)

_COUNT = st.integers(1, 100_000)
_FORMATS = st.sampled_from(sorted(NUMBER_FORMATS.values(), key=lambda each: each.name))


def test_an_elementwise_operator_is_the_formula() -> None:
    """mn FLOPs, 2mn elements read, mn written."""
    assert elementwise(3, 5) == OpCost(flops=15, read_bytes=60, written_bytes=30)


def test_a_piecewise_linear_function_reads_its_table() -> None:
    """Two FLOPs an element; 256 entries are read beside the elements."""
    assert piecewise_linear(10) == OpCost(flops=20, read_bytes=20 + 512, written_bytes=20, parameter_bytes=512)


@pytest.mark.parametrize(("degree", "flops"), [(1, 2), (2, 5), (3, 9), (4, 14)])
def test_a_polynomial_multiplies_its_powers(degree: int, flops: int) -> None:
    """n(n + 1) / 2 products and n additions an element; n coefficients are read."""
    cost = polynomial(10, degree)
    assert cost == OpCost(flops=10 * flops, read_bytes=20 + 2 * degree, written_bytes=20, parameter_bytes=2 * degree)


@given(_COUNT, st.integers(1, 9))
def test_inverses_are_polynomials(n_elements: int, degree: int) -> None:
    """1 / x and 1 / sqrt(x) cost what a polynomial of their degree does."""
    assert inverse(n_elements, degree=degree) == polynomial(n_elements, degree)
    assert inverse_square_root(n_elements, degree=degree) == polynomial(n_elements, degree)


@given(_COUNT, _FORMATS, st.integers(0, 100))
def test_dequantising_moves_what_quantising_moves_the_other_way(
    n_elements: int, stored: NumberFormat, n_parameters: int
) -> None:
    """Both take 2 FLOPs an element and read the parameters; what one writes the other reads."""
    there = quantize(n_elements, into=stored, n_parameters=n_parameters)
    back = dequantize(n_elements, stored=stored, n_parameters=n_parameters)
    assert there.flops == back.flops == 2 * n_elements
    assert there.read_bytes - there.parameter_bytes == back.written_bytes == 2 * n_elements
    assert there.written_bytes == back.read_bytes - back.parameter_bytes == stored.stored_bytes(n_elements)
    assert there.parameter_bytes == back.parameter_bytes == 2 * n_parameters


@given(_COUNT, _COUNT)
def test_pointwise_operators_add_up_over_elements(one: int, other: int) -> None:
    """FLOPs and bytes of two runs are those of both together, tables aside."""
    int8 = find_format("int8")
    for cost_of in (
        lambda n: elementwise(1, n),
        piecewise_linear,
        lambda n: polynomial(n, 3),
        lambda n: quantize(n, into=int8),
        lambda n: dequantize(n, stored=int8),
    ):
        parts, whole = cost_of(one) + cost_of(other), cost_of(one + other)
        assert parts.flops == whole.flops
        assert parts.read_bytes - parts.parameter_bytes == whole.read_bytes - whole.parameter_bytes
        assert parts.written_bytes == whole.written_bytes


def test_no_element_is_no_operator() -> None:
    """Zero elements and a degree of zero are refused by name."""
    with pytest.raises(ArchitectureError, match="n_elements is 0"):
        piecewise_linear(0)
    with pytest.raises(ArchitectureError, match="degree is 0"):
        polynomial(1, 0)
    with pytest.raises(ArchitectureError, match="n_parameters is -1"):
        quantize(1, into=find_format("int8"), n_parameters=-1)
