"""Attention from the norm's output to the mixed heads: by queries, keys and values, or through a latent vector (MLA).

Over the KV cache it is fused in one operator, or products with a softmax between them. Queries, keys and values of
latent attention are products that the engine never adapts with LoRA; only the output projection is.

*Source*: ``build_qkv``, ``build_attn`` and ``build_attn_mha`` in ``src/llama-graph.cpp``, ``src/models/deepseek2.cpp``
and ``src/models/plm.cpp`` of llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from collections.abc import Iterator

from perfsuite.expectation.graphs.operator import Operator, TensorShape, shape
from perfsuite.expectation.graphs.place import (
    KvCache,
    Place,
    cache_of,
    linear,
    product,
    rms_norm,
    rotated,
    store_keys,
    store_values,
)
from perfsuite.workload.architecture import LatentAttention


def fused_scores(place: Place, cache: KvCache, *, values_role: str = "cache_v") -> Iterator[Operator]:
    """Write flash attention; it takes no F32 cache, which is copied to F16 before.

    `values_role` is the tensor that the values are read from.
    """
    a = place.architecture
    read = []
    for role, type_name, size in (("cache_k", cache.type_k, cache.size_k), (values_role, cache.type_v, cache.size_v)):
        kept = place.cached(type_name, size, cache.n_kv, cache.n_heads)
        if type_name == "f32":
            copied = place.cached("f16", size, cache.n_kv, cache.n_heads)
            yield place.operator(role, "CPY", copied, (kept, copied), kv_sources=(0,))
            kept = copied
        read.append(kept)
    query, mask = place.by_sequence("f32", cache.size_k, a.n_heads), place.by_sequence("f16", cache.n_kv, 1)
    kv_sources = [at for at, type_name in ((1, cache.type_k), (2, cache.type_v)) if type_name != "f32"]
    yield place.operator(
        "flash_attn_ext",
        "FLASH_ATTN_EXT",
        heads_by_sequence(place, cache.size_v),
        (query, *read, mask),
        kv_sources=kv_sources,
    )


def split_scores(place: Place, cache: KvCache, *, values_in_cache: bool = True) -> Iterator[Operator]:
    """Write the products and the softmax; values that lie within the keys are transposed to a copy of their own."""
    a = place.architecture
    keys = place.cached(cache.type_k, cache.size_k, cache.n_kv, cache.n_heads)
    values = place.cached(cache.type_v, cache.n_kv, cache.size_v, cache.n_heads)
    if not values_in_cache:
        yield place.operator("v_cont", "CONT", values, (values,), kv_sources=(0,))
    scores = place.by_sequence("f32", cache.n_kv, a.n_heads)
    query = place.by_sequence("f32", cache.size_k, a.n_heads)
    yield place.operator("kq", "MUL_MAT", scores, (keys, query), kv_sources=(0,))
    if a.family.soft_caps:
        for role, op in (("kq_scaled_1", "SCALE"), ("kq_tanh", "TANH"), ("kq_scaled_2", "SCALE")):
            yield place.unary(role, op, scores)
    yield place.operator("kq_soft_max", "SOFT_MAX", scores, (scores, place.by_sequence("f32", cache.n_kv, 1)))
    mixed = place.by_sequence("f32", cache.size_v, a.n_heads)
    yield place.operator("kqv", "MUL_MAT", mixed, (values, scores), kv_sources=(0,) if values_in_cache else ())


def heads_by_sequence(place: Place, size: int) -> TensorShape:
    """Return the shape of the heads of each token, the sequences last."""
    n_sequences = place.batch.n_sequences
    return shape("f32", size, place.architecture.n_heads, place.n // n_sequences, n_sequences)


def gather_heads(place: Place, size: int) -> Operator:
    """Write the copy that puts the heads of a token side by side."""
    width = place.architecture.n_heads * size
    return place.operator("kqv_out", "CONT", place.activation(width), (heads_by_sequence(place, size),))


def attention(place: Place) -> Iterator[Operator]:
    """Write attention up to the output projection."""
    a, cache = place.architecture, cache_of(place)
    yield from _queries(place, cache)
    # A cache for a sliding window has its keys before its values.
    for part in (_keys, _values) if a.family.window_caches else (_values, _keys):
        yield from part(place, cache)
    yield store_keys(place, cache)
    if a.fused_qkv and not place.settings.flash_attn:  # a part of each row, copied to lie in one piece
        yield _copied_values(place, a.n_kv_heads * a.v_head_dim)
    yield store_values(place, cache)
    yield from mixed_heads(place, cache)


def mixed_heads(place: Place, cache: KvCache) -> Iterator[Operator]:
    """Write attention over a cache that holds keys and values."""
    if place.settings.flash_attn:
        yield from fused_scores(place, cache)
    else:
        yield from split_scores(place, cache)
        yield gather_heads(place, cache.size_v)


def output_projection(place: Place) -> Iterator[Operator]:
    """Write what leads from the heads back to the embedding: a rotation back, the product, and its bias."""
    a = place.architecture
    yield from rotated(place, "kqv_out", cache_of(place).rotation_v, a.n_heads * a.v_head_dim)
    yield from linear(place, "attn_out", "attn_output", a.n_heads * a.v_head_dim, a.n_embd)
    if a.family.layer_norm_with_bias:
        yield place.bias("attn_out", "attn_output.bias", a.n_embd)


def rope(place: Place, role: str, *heads: int) -> Operator:
    """Write the rotary embedding of heads."""
    x = place.activation(*heads)
    return place.operator(role, "ROPE", x, (x, place.positions(), *_frequency_factors(place)))


def _frequency_factors(place: Place) -> tuple[TensorShape, ...]:
    """Return the factors of the file: those for long contexts first where there are two kinds."""
    a = place.architecture
    if not a.rope_freq_factors:
        return ()
    names = a.family.rope_factors
    is_long = place.batch.n_ctx > (a.n_ctx_orig or a.n_ctx_train)
    return (place.weight_named(names[0] if is_long else names[-1], a.n_rot // 2),)


def _queries(place: Place, cache: KvCache) -> Iterator[Operator]:
    a = place.architecture
    if a.fused_qkv:
        yield from _fused_projection(place)
    else:
        yield from _projection(place, "q", a.n_heads * a.head_dim)
    yield from _with_position(place, "q", a.n_heads)
    if a.family.scales_queries:
        yield place.unary("Qcur", "SCALE", place.activation(a.head_dim, a.n_heads))
    yield from rotated(place, "Qcur", cache.rotation_k, a.head_dim, a.n_heads)


def _keys(place: Place, cache: KvCache) -> Iterator[Operator]:
    a = place.architecture
    if not a.fused_qkv:
        yield from _projection(place, "k", a.n_kv_heads * a.head_dim)
    yield from _with_position(place, "k", a.n_kv_heads)
    yield from rotated(place, "Kcur", cache.rotation_k, a.head_dim, a.n_kv_heads)


def _values(place: Place, cache: KvCache) -> Iterator[Operator]:
    a = place.architecture
    if not a.fused_qkv:
        yield from _projection(place, "v", a.n_kv_heads * a.v_head_dim)
    elif cache.rotation_v is not None and place.n > 1:  # one token's values lie in one piece already
        yield _copied_values(place, cache.rotation_v)
    yield from rotated(place, "Vcur", cache.rotation_v, a.v_head_dim, a.n_kv_heads)


def _projection(place: Place, letter: str, width: int) -> Iterator[Operator]:
    role = f"{letter.upper()}cur"
    yield from linear(place, role, f"attn_{letter}", place.architecture.n_embd, width)
    if place.architecture.qkv_bias:
        yield place.bias(role, f"attn_{letter}.bias", width)


def _fused_projection(place: Place) -> Iterator[Operator]:
    a = place.architecture
    width = a.n_heads * a.head_dim + a.n_kv_heads * (a.head_dim + a.v_head_dim)
    yield from linear(place, "wqkv", "attn_qkv", a.n_embd, width)
    if a.qkv_bias:
        yield place.bias("wqkv_b", "attn_qkv.bias", width)


def _with_position(place: Place, letter: str, n_heads: int) -> Iterator[Operator]:
    a, role = place.architecture, f"{letter.upper()}cur"
    if a.qk_norm:
        yield rms_norm(place, f"{role}_normed", f"attn_{letter}_norm", a.head_dim, n_heads)
    yield rope(place, role, a.head_dim, n_heads)


def _copied_values(place: Place, row: int) -> Operator:
    a = place.architecture
    heads = place.activation(a.v_head_dim, a.n_kv_heads)
    return place.operator("Vcur", "CONT", shape("f32", row, heads.n_elements // row), (heads,))


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
