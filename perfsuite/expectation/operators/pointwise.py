"""Operators that treat every element alike: arithmetic, non-linear functions, quantisation."""

from __future__ import annotations

from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.dimensions import check_count, check_positive
from perfsuite.expectation.operators.number_format import BF16, NumberFormat

#: Entries of the table that a piecewise-linear function looks up. *Source*: LIFE.
TABLE_ENTRIES = 256
#: Operations of one element: slope times x, plus the offset.
PIECEWISE_LINEAR_FLOPS = 2
#: Operations to quantise or dequantise one element: scale and shift.
QUANTIZE_FLOPS = 2
#: Degree of the polynomial that stands for 1 / x and 1 / sqrt(x) where none is named.
DEFAULT_DEGREE = 2


def elementwise(
    m: int, n: int, *, flops_per_element: int = 1, n_inputs: int = 2, activations: NumberFormat = BF16
) -> OpCost:
    """Cost an elementwise operator over (m, n): mn FLOPs, reads 2mn, writes mn elements. *Source*: LIFE, Table 1."""
    check_positive(m=m, n=n, flops_per_element=flops_per_element, n_inputs=n_inputs)
    n_bytes = activations.stored_bytes(m * n)
    return OpCost(flops=flops_per_element * m * n, read_bytes=n_inputs * n_bytes, written_bytes=n_bytes)


def piecewise_linear(n_elements: int, *, activations: NumberFormat = BF16) -> OpCost:
    """Cost a non-linear function by a 256-entry table: 2 FLOPs an element, reads the table. *Source*: LIFE, Table 1."""
    check_positive(n_elements=n_elements)
    n_bytes, table_bytes = activations.stored_bytes(n_elements), activations.stored_bytes(TABLE_ENTRIES)
    return OpCost(
        flops=PIECEWISE_LINEAR_FLOPS * n_elements,
        read_bytes=n_bytes + table_bytes,
        written_bytes=n_bytes,
        parameter_bytes=table_bytes,
    )


def polynomial(n_elements: int, degree: int, *, activations: NumberFormat = BF16) -> OpCost:
    """Cost a non-linear function by a polynomial of degree n.

    FLOPs n(n + 1) / 2 products and n additions an element; reads the elements and n coefficients.
    *Source*: LIFE, Table 1.
    """
    check_positive(n_elements=n_elements, degree=degree)
    n_bytes, coefficient_bytes = activations.stored_bytes(n_elements), activations.stored_bytes(degree)
    return OpCost(
        flops=(degree * (degree + 1) // 2 + degree) * n_elements,
        read_bytes=n_bytes + coefficient_bytes,
        written_bytes=n_bytes,
        parameter_bytes=coefficient_bytes,
    )


def inverse(n_elements: int, *, degree: int = DEFAULT_DEGREE, activations: NumberFormat = BF16) -> OpCost:
    """Cost 1 / x as a polynomial. *Source*: LIFE, derived operators; the degree is the caller's."""
    return polynomial(n_elements, degree, activations=activations)


def inverse_square_root(n_elements: int, *, degree: int = DEFAULT_DEGREE, activations: NumberFormat = BF16) -> OpCost:
    """Cost 1 / sqrt(x) as a polynomial. *Source*: LIFE, derived operators; the degree is the caller's."""
    return polynomial(n_elements, degree, activations=activations)


def quantize(n_elements: int, *, into: NumberFormat, activations: NumberFormat = BF16, n_parameters: int = 0) -> OpCost:
    """Cost storing elements in a narrower format: 2 FLOPs an element.

    Reads elements x nbytes and parameters x nbytes, writes elements x qbytes. *Source*: LIFE, Table 1.
    """
    check_positive(n_elements=n_elements)
    check_count(n_parameters=n_parameters)
    parameter_bytes = activations.stored_bytes(n_parameters)
    return OpCost(
        flops=QUANTIZE_FLOPS * n_elements,
        read_bytes=activations.stored_bytes(n_elements) + parameter_bytes,
        written_bytes=into.stored_bytes(n_elements),
        parameter_bytes=parameter_bytes,
    )


def dequantize(
    n_elements: int, *, stored: NumberFormat, activations: NumberFormat = BF16, n_parameters: int = 0
) -> OpCost:
    """Cost widening stored elements: 2 FLOPs an element.

    Reads elements x qbytes and parameters x nbytes, writes elements x nbytes. *Source*: LIFE, Table 1.
    """
    check_positive(n_elements=n_elements)
    check_count(n_parameters=n_parameters)
    parameter_bytes = activations.stored_bytes(n_parameters)
    return OpCost(
        flops=QUANTIZE_FLOPS * n_elements,
        read_bytes=stored.stored_bytes(n_elements) + parameter_bytes,
        written_bytes=activations.stored_bytes(n_elements),
        parameter_bytes=parameter_bytes,
    )
