"""Costs of norms and softmax."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.norms import layer_norm, rms_norm, softmax

_SIDE = st.integers(1, 5000)


def test_a_norm_is_the_formula() -> None:
    """4h a token for RMS, 7h for the layer norm, which has a bias to read as well."""
    assert rms_norm(3, 10) == OpCost(flops=120, read_bytes=80, written_bytes=60, parameter_bytes=20)
    assert layer_norm(3, 10) == OpCost(flops=210, read_bytes=100, written_bytes=60, parameter_bytes=40)


def test_softmax_takes_six_operations_a_score() -> None:
    """The scores are read and written once."""
    assert softmax(4, 5) == OpCost(flops=120, read_bytes=40, written_bytes=40)


@given(_SIDE, _SIDE, _SIDE)
def test_rows_add_up(m: int, more: int, n: int) -> None:
    """Chunks of rows cost what all of them do, but for the weights, which are read in each."""
    for cost_of in (rms_norm, layer_norm, softmax):
        parts, whole = cost_of(m, n) + cost_of(more, n), cost_of(m + more, n)
        assert parts.flops == whole.flops
        assert parts.read_bytes - parts.parameter_bytes == whole.read_bytes - whole.parameter_bytes
        assert parts.written_bytes == whole.written_bytes
        assert cost_of(m, n).flops < cost_of(m, n + 1).flops


@pytest.mark.parametrize("cost_of", [rms_norm, layer_norm, softmax])
def test_empty_rows_are_refused(cost_of: object) -> None:
    """A row of no elements is named."""
    assert callable(cost_of)
    with pytest.raises(ArchitectureError, match="n is 0, expected a positive integer"):
        cost_of(1, 0)
