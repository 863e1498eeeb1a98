"""Operator fusion."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.operators.fusion import fused, kept_on_chip
from perfsuite.expectation.operators.matmul import linear
from perfsuite.expectation.operators.pointwise import piecewise_linear

_SIDE = st.integers(1, 1000)


@given(_SIDE, _SIDE, _SIDE)
def test_bytes_between_fused_operators_vanish(m: int, k: int, n: int) -> None:
    """Operations and parameters stay, the tensor between is neither written nor read, one dispatch does for both."""
    first, second = linear(m, k, n), piecewise_linear(m * n)
    between = 2 * m * n
    cost = fused(first, second, between)
    apart = first + second
    assert (cost.flops, cost.parameter_bytes) == (apart.flops, apart.parameter_bytes)
    assert cost.read_bytes == apart.read_bytes - between
    assert cost.written_bytes == apart.written_bytes - between
    assert cost.n_dispatches == apart.n_dispatches - 1


def test_nothing_that_is_not_moved_can_vanish() -> None:
    """More bytes than the first writes, or than the second reads beside its parameters, are refused."""
    with pytest.raises(ArchitectureError, match="written_bytes kept on chip is 42, expected at most 40"):
        fused(linear(2, 3, 10), piecewise_linear(100), 42)
    with pytest.raises(ArchitectureError, match="read_bytes kept on chip is 21, expected at most 20"):
        kept_on_chip(piecewise_linear(10), read_bytes=21)
    with pytest.raises(ArchitectureError, match="n_dispatches kept on chip is 2"):
        kept_on_chip(piecewise_linear(10), n_dispatches=2)
