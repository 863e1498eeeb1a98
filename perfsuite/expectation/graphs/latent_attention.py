"""Attention through a latent vector (MLA), from the norm's output to the mixed heads.

Queries, keys and values are products that the engine never adapts with LoRA; only the output projection is.

*Source*: ``src/models/deepseek2.cpp`` and ``src/models/plm.cpp`` of llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from collections.abc import Iterator

from perfsuite.expectation.graphs.attention import (
    fused_scores,
    gather_heads,
    heads_by_sequence,
    mixed_heads,
    rope,
    split_scores,
)
from perfsuite.expectation.graphs.kv_cache import KvCache, cache_of, rotated, store_keys, store_values
from perfsuite.expectation.graphs.linear import product, rms_norm
from perfsuite.expectation.graphs.operator import Operator, shape
from perfsuite.expectation.graphs.place import Place
from perfsuite.workload.architecture import LatentAttention

#: What the engine calls queries, latent vector, normed vector, values and keys of decompressed attention.
_NAMES = {
    "deepseek2": ("Qcur", "kv_cmpr_pe", "kv_cmpr", "Vcur_cont", "Kcur"),
    "plm": ("q_states", "kv_pe_compresseed", "kv_compressed", "v_states", "k_states"),  # the engine's spelling
}


def absorbed_attention(place: Place, mla: LatentAttention) -> Iterator[Operator]:
    """Write attention with the decompression absorbed: one latent head of keys, the values being a part of it."""
    a, cache = place.architecture, cache_of(place)
    rank, nope, rot = mla.kv_lora_rank, mla.qk_nope_head_dim, mla.qk_rope_head_dim
    yield from _query_projection(place, mla)
    x = shape("f32", nope, place.n, a.n_heads)
    latent = shape("f32", rank, place.n, a.n_heads)
    weight = place.weight("attn_k_b.weight", nope, rank, a.n_heads)
    yield place.operator("q_nope_absorbed", "MUL_MAT", latent, (weight, x), is_weight=True)
    yield rope(place, "q_pe", rot, a.n_heads)
    yield _concatenated(place, "Qcur", rank, rot, a.n_heads)
    yield product(place, "kv_cmpr_pe", "attn_kv_a_mqa", a.n_embd, rank + rot)
    yield rms_norm(place, "kv_cmpr", "attn_kv_a_norm", rank)
    yield rope(place, "k_pe", rot, 1)
    yield _concatenated(place, "Kcur", rank, rot, 1)
    yield store_keys(place, cache)
    yield from _decompressed_heads(place, cache, mla)


def decompressed_attention(place: Place, mla: LatentAttention) -> Iterator[Operator]:
    """Write attention with keys and values decompressed into all heads before they are stored."""
    a, cache = place.architecture, cache_of(place)
    queries, latent, normed, values, keys = _NAMES[a.gguf_architecture]
    nope, rot = mla.qk_nope_head_dim, mla.qk_rope_head_dim
    yield from _query_projection(place, mla)
    yield rope(place, queries, a.head_dim, a.n_heads)
    yield from rotated(place, queries, cache.rotation_k, a.head_dim, a.n_heads)
    yield product(place, latent, "attn_kv_a_mqa", a.n_embd, mla.kv_lora_rank + rot)
    yield rms_norm(place, normed, "attn_kv_a_norm", mla.kv_lora_rank)
    yield product(place, "kv", "attn_kv_b", mla.kv_lora_rank, a.n_heads * (nope + mla.v_head_dim))
    yield place.unary(values, "CONT", place.activation(mla.v_head_dim, a.n_heads))
    yield from rotated(place, values, cache.rotation_v, mla.v_head_dim, a.n_heads)
    yield rope(place, "k_pe", rot, 1)
    yield place.operator("k_pe", "REPEAT", place.activation(rot, a.n_heads), (place.activation(rot, 1),))
    yield _concatenated(place, keys, nope, rot, a.n_heads)
    yield from rotated(place, keys, cache.rotation_k, a.head_dim, a.n_heads)
    yield store_keys(place, cache)
    yield store_values(place, cache)
    yield from mixed_heads(place, cache)


def _query_projection(place: Place, mla: LatentAttention) -> Iterator[Operator]:
    a = place.architecture
    width = a.n_heads * a.head_dim
    if mla.q_lora_rank is None:
        yield product(place, "q", "attn_q", a.n_embd, width)
        return
    yield product(place, "q", "attn_q_a", a.n_embd, mla.q_lora_rank)
    yield rms_norm(place, "q", "attn_q_a_norm", mla.q_lora_rank)
    yield product(place, "q", "attn_q_b", mla.q_lora_rank, width)


def _concatenated(place: Place, role: str, first: int, second: int, n_heads: int) -> Operator:
    parts = (place.activation(first, n_heads), place.activation(second, n_heads))
    return place.operator(role, "CONCAT", place.activation(first + second, n_heads), parts)


def _decompressed_heads(place: Place, cache: KvCache, mla: LatentAttention) -> Iterator[Operator]:
    a = place.architecture
    weight = place.weight("attn_v_b.weight", mla.kv_lora_rank, mla.v_head_dim, a.n_heads)
    latent, heads = (place.by_sequence("f32", size, a.n_heads) for size in (mla.kv_lora_rank, mla.v_head_dim))
    if place.settings.flash_attn:
        yield from fused_scores(place, cache, values_role="cache_k")
        yield place.operator("fattn_mla", "MUL_MAT", heads, (weight, latent), is_weight=True)
        yield place.unary("fattn_mla", "CONT", heads_by_sequence(place, mla.v_head_dim))
    else:
        yield from split_scores(place, cache, values_in_cache=False)
        yield place.operator("kqv_mla", "MUL_MAT", heads, (weight, latent), is_weight=True)
        yield gather_heads(place, mla.v_head_dim)
