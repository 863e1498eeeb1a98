"""Costs of attention with keys and values of their own."""

from __future__ import annotations

from dataclasses import astuple, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.operators.attention import (
    AttentionFormats,
    AttentionShape,
    attention_block,
    attention_core,
    multi_head_attention,
    multi_query_attention,
)
from perfsuite.expectation.operators.number_format import find_format

_SHAPES = st.builds(
    lambda kv, group, dim, v, embd, bias, cap, window: AttentionShape(
        n_embd=embd,
        n_heads=kv * group,
        n_kv_heads=kv,
        head_dim=dim,
        v_head_dim=v,
        qkv_bias=bias,
        softcap=cap,
        sliding_window=window,
    ),
    *(st.integers(1, 8), st.integers(1, 8), st.integers(1, 128), st.integers(1, 128), st.integers(1, 512)),
    *(st.booleans(), st.booleans(), st.none() | st.integers(1, 300)),
)
_TOKENS, _PAST = st.integers(1, 200), st.integers(0, 500)
_FORMATS = st.builds(
    lambda weights, kv: AttentionFormats(weights=find_format(weights), kv=find_format(kv)),
    st.sampled_from(["bf16", "int8", "int4", "q4_0"]),
    st.sampled_from(["bf16", "int8", "int4", "q8_0"]),
)
_LLAMA = AttentionShape(n_embd=4096, n_heads=32, n_kv_heads=32, head_dim=128, v_head_dim=128)
_INT4_KV = AttentionFormats(kv=find_format("int4"))


def test_the_core_of_llama_is_the_formula() -> None:
    """512 FLOPs of products and 6 of softmax a score; fused, q, K and V are read and the mix is written."""
    cost = attention_core(10, 90, _LLAMA, fused=True)
    assert cost.flops == 32 * 10 * 100 * (4 * 128 + 6)
    assert cost.read_bytes == 2 * 4096 * (10 + 2 * 100)
    assert cost.written_bytes == 2 * 4096 * 10
    assert cost.kv_read_bytes == 2 * 4096 * 2 * 100


def test_scores_are_written_and_read_twice_unfused() -> None:
    """Eager attention differs from fused by four moves of the scores and two dispatches alone."""
    eager, fused = attention_core(10, 90, _LLAMA), attention_core(10, 90, _LLAMA, fused=True)
    scores_bytes = 2 * 32 * 10 * 100
    assert eager.flops == fused.flops
    assert eager.read_bytes - fused.read_bytes == 2 * scores_bytes
    assert eager.written_bytes - fused.written_bytes == 2 * scores_bytes
    assert (eager.n_dispatches, fused.n_dispatches) == (3, 1)


@given(_TOKENS, _PAST, _SHAPES, _FORMATS, st.booleans())
def test_grouped_heads_bound_the_other_kinds(
    m: int, n_past: int, shape: AttentionShape, formats: AttentionFormats, fused: bool
) -> None:
    """Grouped attention with as many KV heads as heads is multi-head, with one multi-query."""
    all_heads, one_head = replace(shape, n_kv_heads=shape.n_heads), replace(shape, n_kv_heads=1)
    many = multi_head_attention(m, n_past, shape, formats=formats, fused=fused)
    one = multi_query_attention(m, n_past, shape, formats=formats, fused=fused)
    some = attention_block(m, n_past, shape, formats=formats, fused=fused)
    assert many == attention_block(m, n_past, all_heads, formats=formats, fused=fused)
    assert one == attention_block(m, n_past, one_head, formats=formats, fused=fused)
    assert one.kv_bytes <= some.kv_bytes <= many.kv_bytes
    assert one.flops <= some.flops <= many.flops


@given(_TOKENS, _TOKENS, _PAST, _SHAPES, st.booleans())
def test_operations_of_the_core_add_up_over_queries(
    m: int, more: int, n_past: int, shape: AttentionShape, fused: bool
) -> None:
    """Two chunks of queries over the same positions compute what both together do, and write as much."""
    whole = attention_core(m + more, n_past, shape, fused=fused)
    one = attention_core(m, n_past + more, shape, fused=fused)
    other = attention_core(more, n_past + m, shape, fused=fused)
    assert one.flops + other.flops == whole.flops
    assert one.written_bytes + other.written_bytes == whole.written_bytes
    assert one.read_bytes + other.read_bytes >= whole.read_bytes


@given(_TOKENS, _PAST, _SHAPES, _FORMATS, st.booleans())
def test_attention_grows_with_each_dimension(
    m: int, n_past: int, shape: AttentionShape, formats: AttentionFormats, fused: bool
) -> None:
    """More tokens, positions, heads or larger heads cost no less, and every count is a non-negative integer."""
    cost = astuple(attention_block(m, n_past, shape, formats=formats, fused=fused))
    assert all(type(each) is int and each >= 0 for each in cost)
    larger = [
        attention_block(m + 1, n_past, shape, formats=formats, fused=fused),
        attention_block(m, n_past + 1, shape, formats=formats, fused=fused),
        *(
            attention_block(m, n_past, replace(shape, **{name: getattr(shape, name) + 1}), formats=formats, fused=fused)
            for name in ("n_embd", "head_dim", "v_head_dim")
        ),
        attention_block(m, n_past, replace(shape, n_heads=2 * shape.n_heads), formats=formats, fused=fused),
    ]
    assert all(all(a <= b for a, b in zip(cost, astuple(each), strict=True)) for each in larger)


def test_a_window_bounds_what_is_seen() -> None:
    """Beyond the window, positions add nothing to a decode step; a window that is not reached changes nothing."""
    narrow = replace(_LLAMA, sliding_window=64)
    assert attention_core(1, 63, narrow) == attention_core(1, 5000, narrow) == attention_core(1, 63, _LLAMA)
    assert attention_core(4, 5000, narrow).kv_read_bytes == 2 * 2 * 4096 * (64 + 3)


def test_a_soft_cap_costs_four_operations_a_score() -> None:
    """Capping divides, looks the tanh up and multiplies; unfused, the scores move once more each way."""
    capped = replace(_LLAMA, softcap=True)
    for fused in (False, True):
        less, more = (attention_core(2, 98, shape, fused=fused) for shape in (_LLAMA, capped))
        assert more.flops - less.flops == 4 * 32 * 2 * 100
        assert more.moved_bytes - less.moved_bytes == (0 if fused else 2 * 2 * 32 * 2 * 100)


def test_biases_are_read_and_added() -> None:
    """A bias on q, k and v adds an operation and a parameter for each of their elements."""
    bare, biased = (attention_block(3, 0, replace(_LLAMA, qkv_bias=bias)) for bias in (False, True))
    assert biased.flops - bare.flops == 3 * 3 * 4096
    assert biased.parameter_bytes - bare.parameter_bytes == 2 * 3 * 4096


def test_a_quantised_cache_is_smaller_and_is_dequantised() -> None:
    """Int4 keys and values take a quarter of the bytes, and 2 FLOPs an element that is read."""
    plain, quantised = (attention_core(1, 99, _LLAMA, formats=each, fused=True) for each in (None, _INT4_KV))
    assert 4 * quantised.kv_read_bytes == plain.kv_read_bytes
    assert quantised.flops - plain.flops == 2 * 2 * 100 * 4096


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_heads": 0}, "n_heads is 0"),
        ({"n_kv_heads": 5}, "n_kv_heads is 5, expected a positive divisor of 32"),
        ({"head_dim": -128}, "head_dim is -128"),
        ({"sliding_window": 0}, "sliding_window is 0"),
    ],
)
def test_impossible_shapes_are_refused(change: dict[str, int], message: str) -> None:
    """A dimension that no attention has is named with its value."""
    with pytest.raises(ArchitectureError, match=message):
        replace(_LLAMA, **change)


def test_impossible_counts_are_refused() -> None:
    """No tokens, and fewer than no positions, are named."""
    with pytest.raises(ArchitectureError, match="m is 0"):
        attention_core(0, 0, _LLAMA)
    with pytest.raises(ArchitectureError, match="n_past is -1"):
        attention_block(1, -1, _LLAMA)
