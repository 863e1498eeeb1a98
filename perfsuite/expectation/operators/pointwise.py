"""Operators that treat every element alike: arithmetic and non-linear functions."""

from __future__ import annotations

from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.number_format import BF16, NumberFormat

#: Entries of the table that a piecewise-linear function looks up. *Source*: LIFE.
TABLE_ENTRIES = 256
#: Operations of one element: slope times x, plus the offset.
PIECEWISE_LINEAR_FLOPS = 2


def elementwise(m: int, n: int, *, activations: NumberFormat = BF16) -> OpCost:
    """Cost an elementwise operator over (m, n): mn FLOPs, reads 2mn, writes mn elements. *Source*: LIFE, Table 1."""
    n_bytes = activations.stored_bytes(m * n)
    return OpCost(flops=m * n, read_bytes=2 * n_bytes, written_bytes=n_bytes)


def piecewise_linear(n_elements: int, *, activations: NumberFormat = BF16) -> OpCost:
    """Cost a non-linear function by a 256-entry table: 2 FLOPs an element, reads the table. *Source*: LIFE, Table 1."""
    n_bytes, table_bytes = activations.stored_bytes(n_elements), activations.stored_bytes(TABLE_ENTRIES)
    return OpCost(
        flops=PIECEWISE_LINEAR_FLOPS * n_elements,
        read_bytes=n_bytes + table_bytes,
        written_bytes=n_bytes,
        parameter_bytes=table_bytes,
    )
