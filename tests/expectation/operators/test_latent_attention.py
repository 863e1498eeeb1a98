"""Costs of latent attention."""

from __future__ import annotations

from dataclasses import astuple, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.operators.attention import AttentionFormats
from perfsuite.expectation.operators.latent_attention import LatentShape, latent_attention_block
from perfsuite.expectation.operators.number_format import find_format

_SHAPES = st.builds(
    LatentShape,
    n_embd=st.integers(1, 512),
    n_heads=st.integers(1, 16),
    q_lora_rank=st.none() | st.integers(1, 64),
    kv_lora_rank=st.integers(1, 64),
    qk_nope_head_dim=st.integers(1, 64),
    qk_rope_head_dim=st.integers(1, 64),
    v_head_dim=st.integers(1, 64),
)
_TOKENS, _PAST = st.integers(1, 100), st.integers(0, 300)
_FORMATS = st.builds(
    lambda weights, kv: AttentionFormats(weights=find_format(weights), kv=find_format(kv)),
    st.sampled_from(["bf16", "int4"]),
    st.sampled_from(["bf16", "int8", "int4"]),
)
_DEEPSEEK = LatentShape(
    n_embd=2048,
    n_heads=16,
    q_lora_rank=None,
    kv_lora_rank=512,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
)


@pytest.mark.parametrize("absorbed", [False, True])
def test_the_cache_holds_the_latent_vector_alone(absorbed: bool) -> None:
    """Each position is 512 + 64 elements, written once by its token and read once by a pass."""
    cost = latent_attention_block(3, 97, _DEEPSEEK, absorbed=absorbed)
    assert cost.kv_written_bytes == 3 * 2 * 576
    assert cost.kv_read_bytes == 100 * 2 * 576


def test_both_forms_read_the_same_weights() -> None:
    """q (2048, 3072), down (2048, 576), up (512, 4096) and o (2048, 2048) are all there is."""
    weights = 2048 * 3072 + 2048 * 576 + 512 * 4096 + 2048 * 2048
    for absorbed in (False, True):
        assert latent_attention_block(1, 0, _DEEPSEEK, absorbed=absorbed).parameter_bytes == 2 * weights


def test_decompression_is_paid_for_every_position() -> None:
    """A step over one position more widens it once more and scores it in 192 + 128 dimensions."""
    near, far = (latent_attention_block(1, n_past, _DEEPSEEK, fused=True) for n_past in (99, 100))
    assert far.flops - near.flops == 2 * 512 * 16 * 256 + 16 * (2 * (192 + 128) + 6)


def test_absorption_is_paid_for_every_query() -> None:
    """A step over one position more scores the latent vector, 576 + 512 dimensions, and widens nothing."""
    near, far = (latent_attention_block(1, n_past, _DEEPSEEK, fused=True, absorbed=True) for n_past in (99, 100))
    assert far.flops - near.flops == 16 * (2 * (576 + 512) + 6)
    assert far.moved_bytes - near.moved_bytes == 2 * 576


def test_a_query_rank_replaces_the_projection() -> None:
    """Queries through a rank of r cost 2m r (h + width) in place of 2m h width."""
    direct = latent_attention_block(5, 0, _DEEPSEEK)
    ranked = latent_attention_block(5, 0, replace(_DEEPSEEK, q_lora_rank=128))
    assert direct.flops - ranked.flops == 2 * 5 * (2048 * 3072 - 128 * (2048 + 3072))
    assert ranked.n_dispatches == direct.n_dispatches + 1


@given(_TOKENS, _PAST, _SHAPES, _FORMATS, st.booleans(), st.booleans())
def test_latent_attention_grows_with_each_dimension(
    m: int, n_past: int, shape: LatentShape, formats: AttentionFormats, fused: bool, absorbed: bool
) -> None:
    """More of anything costs no less, and every count is a non-negative integer."""

    def counts(m: int, n_past: int, shape: LatentShape) -> tuple[int, ...]:
        cost = latent_attention_block(m, n_past, shape, formats=formats, fused=fused, absorbed=absorbed)
        return astuple(cost)

    cost = counts(m, n_past, shape)
    assert all(type(each) is int and each >= 0 for each in cost)
    names = ("n_embd", "n_heads", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    larger = [replace(shape, **{name: getattr(shape, name) + 1}) for name in names]
    costs = [counts(m + 1, n_past, shape), counts(m, n_past + 1, shape), *(counts(m, n_past, each) for each in larger)]
    assert all(all(a <= b for a, b in zip(cost, each, strict=True)) for each in costs)


@pytest.mark.parametrize("field", ["q_lora_rank", "kv_lora_rank", "qk_rope_head_dim", "v_head_dim"])
def test_impossible_shapes_are_refused(field: str) -> None:
    """A rank or head of zero is named."""
    with pytest.raises(ArchitectureError, match=f"{field} is 0"):
        replace(_DEEPSEEK, **{field: 0})
