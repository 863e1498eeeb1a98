"""Costs of routed experts."""

from __future__ import annotations

from dataclasses import astuple, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.operators.feed_forward import feed_forward
from perfsuite.expectation.operators.mixture_of_experts import (
    ExpertsShape,
    expected_distinct_experts,
    mixture_of_experts,
)
from perfsuite.expectation.operators.number_format import find_format

_DEEPSEEK = ExpertsShape(n_embd=2048, n_experts=64, n_experts_used=6, n_ff_expert=1408, n_ff_shared=2816)
_SHAPES = st.builds(
    lambda embd, used, unused, ff, shared: ExpertsShape(
        n_embd=embd, n_experts=used + unused, n_experts_used=used, n_ff_expert=ff, n_ff_shared=shared
    ),
    *(st.integers(1, 256), st.integers(1, 8), st.integers(0, 60), st.integers(1, 256), st.integers(0, 256)),
)
_FORMATS = st.sampled_from([find_format(name) for name in ("bf16", "int4")])


def test_one_token_touches_its_experts() -> None:
    """The expectation for one token is the number of experts that it uses."""
    assert expected_distinct_experts(64, 6, 1) == pytest.approx(6)


def test_two_tokens_share_some_experts() -> None:
    """Of 4 experts, 2 a token, two tokens touch 3 on average."""
    assert expected_distinct_experts(4, 2, 2) == pytest.approx(3.0)


@given(st.integers(1, 128), st.integers(0, 128), st.integers(1, 500))
def test_a_batch_touches_between_one_tokens_and_all(n_used: int, n_unused: int, n_tokens: int) -> None:
    """More tokens touch more experts, never fewer than one token does and never more than there are."""
    n_experts = n_used + n_unused
    few, many = (expected_distinct_experts(n_experts, n_used, n) for n in (n_tokens, n_tokens + 1))
    assert n_used - 1e-9 <= few <= many <= n_experts


def test_a_token_reads_its_experts_weights() -> None:
    """6 of 64 experts, the shared one and the router are read for one token."""
    cost = mixture_of_experts(1, _DEEPSEEK)
    weights = 3 * 2048 * (6 * 1408 + 2816) + 2048 * 64
    tables = 2 * 512
    assert cost.parameter_bytes == 2 * weights + tables


def test_operations_follow_the_pairs_of_token_and_expert() -> None:
    """Without a shared expert, a batch computes exactly the operations of its tokens, however they share experts."""
    routed = replace(_DEEPSEEK, n_ff_shared=0)
    assert mixture_of_experts(10, routed).flops == 10 * mixture_of_experts(1, routed).flops


def test_all_experts_at_once_are_a_wider_block() -> None:
    """With every expert used, the products are those of one dense block of their widths together."""
    all_used = ExpertsShape(n_embd=64, n_experts=4, n_experts_used=4, n_ff_expert=32)
    dense = feed_forward(1, 64, 128)
    router = 2 * 64 * 4 + 6 * 4 + 4 * 4
    weighted_sum = 2 * 4 * 64
    assert mixture_of_experts(1, all_used).flops == dense.flops + router + weighted_sum


@given(st.integers(1, 100), _SHAPES, _FORMATS)
def test_experts_grow_with_each_dimension(m: int, shape: ExpertsShape, weights: object) -> None:
    """More tokens, a wider input or wider experts cost no less, and every count is a non-negative integer."""
    cost = astuple(mixture_of_experts(m, shape, weights=weights))
    assert all(type(each) is int and each >= 0 for each in cost)
    larger = [(m + 1, shape)]
    larger += [(m, replace(shape, **{name: getattr(shape, name) + 1})) for name in ("n_embd", "n_ff_expert")]
    for tokens, each in larger:
        more = astuple(mixture_of_experts(tokens, each, weights=weights))
        assert all(a <= b for a, b in zip(cost, more, strict=True))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_experts_used": 65}, "n_experts_used is 65, expected an integer from 1 to 64"),
        ({"n_experts_used": 0}, "n_experts_used is 0"),
        ({"n_ff_expert": 0}, "n_ff_expert is 0"),
        ({"n_ff_shared": -1}, "n_ff_shared is -1"),
    ],
)
def test_impossible_shapes_are_refused(change: dict[str, int], message: str) -> None:
    """More experts used than there are, or a width of zero, are named."""
    with pytest.raises(ArchitectureError, match=message):
        replace(_DEEPSEEK, **change)
