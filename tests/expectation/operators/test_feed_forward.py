"""Costs of the dense feed-forward block."""

from __future__ import annotations

from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.operators.feed_forward import feed_forward
from perfsuite.expectation.operators.number_format import find_format

_SIDE = st.integers(1, 2000)


def test_a_gated_block_is_the_formula() -> None:
    """6mhI FLOPs of products, 2mI of the activation, mI of the gate; three matrices of parameters."""
    cost = feed_forward(3, 8, 20)
    assert cost.flops == 3 * (6 * 8 * 20 + 3 * 20)
    assert cost.parameter_bytes == 2 * 3 * 8 * 20 + 512
    assert cost.n_dispatches == 5


def test_a_plain_block_has_two_matrices() -> None:
    """4mhI FLOPs of products and 2mI of the activation."""
    cost = feed_forward(3, 8, 20, gated=False)
    assert cost.flops == 3 * (4 * 8 * 20 + 2 * 20)
    assert cost.n_dispatches == 3


@given(_SIDE, _SIDE, _SIDE, st.booleans())
def test_a_fused_block_moves_its_input_and_output_alone(m: int, n_embd: int, n_ff: int, gated: bool) -> None:
    """Beside the parameters, mh elements are read and mh written in one dispatch; operations stay."""
    cost = feed_forward(m, n_embd, n_ff, gated=gated, fused=True)
    assert cost.flops == feed_forward(m, n_embd, n_ff, gated=gated).flops
    assert cost.read_bytes - cost.parameter_bytes == 2 * m * n_embd
    assert cost.written_bytes == 2 * m * n_embd
    assert cost.n_dispatches == 1


@given(_SIDE, _SIDE, _SIDE, st.booleans(), st.booleans())
def test_the_block_grows_with_each_dimension(m: int, n_embd: int, n_ff: int, gated: bool, fused: bool) -> None:
    """More tokens, a wider input or a wider middle cost no less."""
    kwargs = {"gated": gated, "fused": fused}
    cost = astuple(feed_forward(m, n_embd, n_ff, weights=find_format("int4"), **kwargs))
    assert all(type(each) is int and each >= 0 for each in cost)
    for sides in ((m + 1, n_embd, n_ff), (m, n_embd + 1, n_ff), (m, n_embd, n_ff + 1)):
        more = astuple(feed_forward(*sides, weights=find_format("int4"), **kwargs))
        assert all(a <= b for a, b in zip(cost, more, strict=True))


def test_an_empty_block_is_refused() -> None:
    """A width of zero is named."""
    with pytest.raises(ArchitectureError, match="n_ff is 0"):
        feed_forward(1, 8, 0)
