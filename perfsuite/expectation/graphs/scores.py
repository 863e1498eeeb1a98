"""Attention over the KV cache: fused in one operator, or products with a softmax between them.

*Source*: ``build_attn_mha`` in ``src/llama-graph.cpp`` of llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from collections.abc import Iterator

from perfsuite.expectation.graphs.kv_cache import KvCache
from perfsuite.expectation.graphs.operator import Operator, shape
from perfsuite.expectation.graphs.place import Place
from perfsuite.expectation.tensor_shape import TensorShape


def fused_scores(place: Place, cache: KvCache, *, values_role: str = "cache_v") -> Iterator[Operator]:
    """Write flash attention; it takes no F32 cache, which is copied to F16 before.

    `values_role` is the tensor that the values are read from.
    """
    a = place.architecture
    read = []
    for role, type_name, size in (("cache_k", cache.type_k, cache.size_k), (values_role, cache.type_v, cache.size_v)):
        kept = shape(type_name, size, cache.n_kv, cache.n_heads)
        if type_name == "f32":
            copied = shape("f16", size, cache.n_kv, cache.n_heads)
            yield place.operator(role, "CPY", copied, (kept, copied), kv_sources=(0,))
            kept = copied
        read.append(kept)
    sources = (shape("f32", cache.size_k, place.n, a.n_heads), *read, shape("f16", cache.n_kv, place.n))
    kv_sources = [at for at, type_name in ((1, cache.type_k), (2, cache.type_v)) if type_name != "f32"]
    output = shape("f32", cache.size_v, a.n_heads, place.n)
    yield place.operator("flash_attn_ext", "FLASH_ATTN_EXT", output, sources, kv_sources=kv_sources)


def split_scores(place: Place, cache: KvCache, *, values_in_cache: bool = True) -> Iterator[Operator]:
    """Write the products and the softmax; values that lie within the keys are transposed to a copy of their own."""
    a = place.architecture
    keys = shape(cache.type_k, cache.size_k, cache.n_kv, cache.n_heads)
    values = shape(cache.type_v, cache.n_kv, cache.size_v, cache.n_heads)
    if not values_in_cache:
        yield place.operator("v_cont", "CONT", values, (values,), kv_sources=(0,))
    scores = shape("f32", cache.n_kv, place.n, a.n_heads)
    query = shape("f32", cache.size_k, place.n, a.n_heads)
    yield place.operator("kq", "MUL_MAT", scores, (keys, query), kv_sources=(0,))
    if a.family.soft_caps:
        yield from _soft_cap(place, scores)
    yield place.operator("kq_soft_max", "SOFT_MAX", scores, (scores, shape("f32", cache.n_kv, place.n)))
    mixed = shape("f32", cache.size_v, place.n, a.n_heads)
    yield place.operator("kqv", "MUL_MAT", mixed, (values, scores), kv_sources=(0,) if values_in_cache else ())


def gather_heads(place: Place, size: int) -> Operator:
    """Write the copy that puts the heads of a token side by side."""
    n_heads = place.architecture.n_heads
    heads = shape("f32", size, n_heads, place.n)
    return place.operator("kqv_out", "CONT", place.activation(n_heads * size), (heads,))


def _soft_cap(place: Place, scores: TensorShape) -> Iterator[Operator]:
    for role, op in (("kq_scaled_1", "SCALE"), ("kq_tanh", "TANH"), ("kq_scaled_2", "SCALE")):
        yield place.unary(role, op, scores)
