"""What the time of an operator grows with."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.expectation.ggml_rules import distinct_experts
from perfsuite.expectation.thread_rules import SPLIT_POSITIONS
from perfsuite.expectation.timing.features import family, features
from perfsuite.expectation.timing.grid import standard_shapes
from perfsuite.expectation.timing.operator_shape import OperatorShape


def attention(n_tokens: int, n_past: int, *, type: str = "f16") -> OperatorShape:
    """Attention of 8 heads of 64 elements over a cache of 2."""
    return OperatorShape(
        op="FLASH_ATTN_EXT", type=type, n_inner=64, n_tokens=n_tokens, n_heads=8, n_kv_heads=2, n_past=n_past
    )


def terms(shape: OperatorShape, n_threads: int = 2) -> tuple[float, ...]:
    """Return the features at the shape's own rows."""
    return features(shape, shape.n_tokens, n_threads)


def test_every_operator_of_the_grid_has_a_dispatch_and_more() -> None:
    """The first term is 1, and the others grow with something."""
    for shape in standard_shapes(("q4_0",)):
        first, *rest = terms(shape)
        assert first == 1.0, shape
        assert rest, shape
        assert all(term > 0.0 for term in rest), shape


def test_a_product_streams_its_weights() -> None:
    """The terms of a product with weights are its area, its columns and its rows."""
    assert terms(OperatorShape(op="MUL_MAT", type="q8_0", n_inner=512, n_outer=256, n_tokens=8)) == (
        *(1.0, 512.0 * 256, 512.0, 256.0),
    )


def test_a_product_of_attention_is_one_for_each_head() -> None:
    """The terms of attention's plain products are those of a head, times the heads, and their fit is their own."""
    scores = OperatorShape(op="MUL_MAT", type="f16", n_inner=64, n_outer=256, n_heads=8, n_kv_heads=2)
    assert terms(scores) == (1.0, 8.0 * 64 * 256, 8.0 * 256)
    weights = OperatorShape(op="MUL_MAT", type="f16", n_inner=64, n_outer=256)
    assert family(scores) == ("MUL_MAT/heads", "f16")
    assert family(weights) == ("MUL_MAT", "f16")
    assert family(attention(1, 0)) == family(attention(512, 99)) == ("FLASH_ATTN_EXT", "f16")


@given(st.integers(1, 64), st.integers(1, 64), st.integers(1, 600))
def test_a_batch_touches_some_experts(n_experts: int, n_used: int, n_tokens: int) -> None:
    """One token touches those that it is routed to; more tokens touch no fewer, and never more than there are."""
    n_used = min(n_used, n_experts)
    found = distinct_experts(n_experts, n_used, n_tokens)
    assert distinct_experts(n_experts, n_used, 1) == pytest.approx(n_used)
    assert n_used * (1 - 1e-9) <= found <= min(n_experts, n_used * n_tokens) * (1 + 1e-9)
    assert distinct_experts(n_experts, n_used, n_tokens + 1) >= found * (1 - 1e-9)


def test_the_experts_of_a_batch_are_those_of_draws() -> None:
    """The formula is the mean over random draws: 6 of 64 for each of 20 tokens."""
    draw = random.Random(5)
    counts = [len({each for _ in range(20) for each in draw.sample(range(64), 6)}) for _ in range(2000)]
    assert distinct_experts(64, 6, 20) == pytest.approx(sum(counts) / len(counts), rel=0.01)


def test_experts_are_read_once_and_computed_for_each_token() -> None:
    """One term is the area of all experts that are read, the other that of a token's own."""
    shape = OperatorShape(op="MUL_MAT_ID", type="q8_0", n_inner=128, n_outer=32, n_tokens=10, n_experts=8, n_used=2)
    assert terms(shape) == pytest.approx((1.0, 128 * 32 * distinct_experts(8, 2, 10), 128 * 32 * 2))


@given(st.integers(2, 600), st.integers(0, 3000))
def test_a_prompt_sees_half_of_itself(n_tokens: int, n_past: int) -> None:
    """Each token of a batch sees what was before and itself; the term counts their mean."""
    positions = sum(n_past + at + 1 for at in range(n_tokens)) / n_tokens
    assert terms(attention(n_tokens, n_past)) == pytest.approx(
        (1.0, 8.0, 8 * positions, 8 * positions * 64, 2 * positions * 64)
    )


@pytest.mark.parametrize(
    ("n_past", "n_threads", "type", "positions"),
    [
        (0, 2, "f16", 1),
        (255, 2, "f16", 256),
        (256, 2, "f16", 512),
        (299, 2, "f16", 512),
        (299, 3, "f16", 513),
        (99, 1, "f16", 100),
        (599, 1, "f16", 600),
        (599, 2, "f16", 768),
        (599, 4, "f16", 768),
        (599, 2, "q8_0", 600),
        (299, 2, "q8_0", 300),
    ],
)
def test_a_single_query_is_split_over_the_padded_cache(n_past: int, n_threads: int, type: str, positions: int) -> None:
    """From 512 padded positions on the busiest thread's share counts, masked ones included; before, those in use."""
    assert SPLIT_POSITIONS == 512
    found = terms(attention(1, n_past, type=type), n_threads)
    assert found == (1.0, 8.0, 8.0 * positions, 8.0 * positions * 64, 2.0 * positions * 64)


def test_rows_work_on_all_heads() -> None:
    """RoPE has the angles of a row and its elements over all heads, softmax the latter alone."""
    rope = OperatorShape(op="ROPE", type="f32", n_inner=64, n_tokens=9, n_heads=4)
    assert terms(rope) == (1.0, 64.0, 256.0)
    softmax = OperatorShape(op="SOFT_MAX", type="f32", n_inner=64, n_tokens=9, n_heads=4)
    assert terms(softmax) == (1.0, 256.0)
    assert terms(OperatorShape(op="ADD", type="f32", n_inner=64, n_tokens=9)) == (1.0, 64.0, 512.0)
