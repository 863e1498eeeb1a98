"""Costs of operators beside the products: pointwise, of rows, of tables."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.number_format import find_format
from perfsuite.expectation.operators.pointwise import elementwise, embedding, piecewise_linear, rms_norm, rope, softmax

_LENGTH = st.integers(1, 5000)


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        (elementwise(3, 5), OpCost(flops=15, read_bytes=60, written_bytes=30)),
        (piecewise_linear(10), OpCost(flops=20, read_bytes=20 + 512, written_bytes=20, parameter_bytes=512)),
        (rms_norm(3, 10), OpCost(flops=120, read_bytes=80, written_bytes=60, parameter_bytes=20)),
        (softmax(4, 5), OpCost(flops=120, read_bytes=40, written_bytes=40)),
        (softmax(4, 5, activations=find_format("int8")), OpCost(flops=120, read_bytes=20, written_bytes=20)),
        (embedding(3, 100, 8), OpCost(read_bytes=2 * (800 + 8), written_bytes=48, parameter_bytes=1600)),
        (rope(3, 8, table_elements=5), OpCost(flops=72, read_bytes=58, written_bytes=48, parameter_bytes=10)),
    ],
)
def test_a_cost_is_its_formula(cost: OpCost, expected: OpCost) -> None:
    """Elements of two bytes are read and written once; tables and weights are parameters; an embedding reads all."""
    assert cost == expected


@given(_LENGTH, _LENGTH, _LENGTH)
def test_rows_add_up(m: int, more: int, n: int) -> None:
    """Chunks of rows cost what all of them do, but for weights and tables, which are read in each."""
    formulas: tuple[Callable[[int], OpCost], ...] = (
        lambda rows: rms_norm(rows, n),
        lambda rows: softmax(rows, n),
        lambda rows: elementwise(rows, n),
        lambda rows: piecewise_linear(rows * n),
        lambda rows: rope(rows, n, table_elements=7),
    )
    for cost_of in formulas:
        parts, whole = cost_of(m) + cost_of(more), cost_of(m + more)
        assert parts.flops == whole.flops
        assert parts.read_bytes - parts.parameter_bytes == whole.read_bytes - whole.parameter_bytes
        assert parts.written_bytes == whole.written_bytes
