"""The KV cache of a layer: its cells, how a batch is stored in it, and the rotation before quantised storage.

*Source*: ``src/llama-kv-cache.cpp`` and ``src/llama-kv-cache-iswa.cpp`` of llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from perfsuite.expectation.graphs.operator import Operator, TensorShape, shape
from perfsuite.expectation.graphs.place import Place
from perfsuite.workload.ggml_types import GGML_TYPES

#: The smallest Hadamard matrix, which values use; keys use the largest that divides their heads.
_ROTATION = 64

#: What a file of Gemma 2 that says no window has.
_DEFAULT_WINDOW = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCache:
    """What the cache of one layer holds."""

    #: Cells of all sequences, and those of one that attention works on.
    n_cells: int
    n_kv: int
    n_heads: int
    #: Sizes of a key and of a value in it.
    size_k: int
    size_v: int
    type_k: str
    type_v: str
    #: Size of the Hadamard matrix that turns queries and keys, and of that for values and what attention makes of
    #: them; None where they are stored as they are.
    rotation_k: int | None
    rotation_v: int | None

    @property
    def width_k(self) -> int:
        """Key elements of a position."""
        return self.n_heads * self.size_k

    @property
    def width_v(self) -> int:
        """Value elements of a position."""
        return self.n_heads * self.size_v


def cache_of(place: Place) -> KvCache:
    """Return the cache of a layer, which may be a smaller one for a sliding window."""
    a, batch, settings = place.architecture, place.batch, place.settings
    n_cells, n_kv = batch.n_ctx, batch.n_kv
    if (window := window_of(place)) is not None and not settings.swa_full:
        n_cells, n_kv = batch.window_cells(window), batch.window_n_kv(window)
    mla = a.mla if a.mla is not None and a.mla.absorbed else None
    # A latent head is stored as it is.
    turns_k, turns_v = (
        mla is None and _is_rotated(kind, size)
        for kind, size in ((settings.type_k, a.head_dim), (settings.type_v, a.v_head_dim))
    )
    return KvCache(
        n_cells=n_cells * batch.n_caches,
        n_kv=n_kv,
        n_heads=a.n_kv_heads,
        size_k=mla.kv_lora_rank + mla.qk_rope_head_dim if mla else a.head_dim,
        size_v=mla.kv_lora_rank if mla else a.v_head_dim,
        type_k=settings.type_k,
        type_v=settings.type_v,
        rotation_k=a.head_dim & -a.head_dim if turns_k else None,
        rotation_v=_ROTATION if turns_v else None,
    )


def window_of(place: Place) -> int | None:
    """Return the sliding window of a layer, which Gemma 2's even ones have; other windows the engine leaves unused."""
    a = place.architecture
    has_window = a.family.window_caches and place.layer is not None and place.layer % 2 == 0
    return (a.sliding_window or _DEFAULT_WINDOW) if has_window else None


def rotated(place: Place, role: str, size: int | None, *ne: int) -> Iterator[Operator]:
    """Write the transform of heads `ne` with a Hadamard matrix of `size`, if there is one."""
    if size is None:
        return
    n_rows = place.activation(*ne).n_elements // size
    x = shape("f32", size, n_rows)
    yield place.operator(f"{role}_rot", "FWHT", x, (shape("f32", size, size), x))


def store_keys(place: Place, cache: KvCache) -> Operator:
    """Write the batch's keys into the cache, a row for each token."""
    return _store(place, "cache_k", shape(cache.type_k, cache.width_k, cache.n_cells), cache.width_k, place.n)


def store_values(place: Place, cache: KvCache) -> Operator:
    """Write the batch's values into the cache: rows, or without flash attention each element to a place of its own."""
    width = cache.width_v
    if place.settings.flash_attn:
        return _store(place, "cache_v", shape(cache.type_v, width, cache.n_cells), width, place.n)
    return _store(place, "cache_v", shape(cache.type_v, 1, width * cache.n_cells), 1, width * place.n)


def _is_rotated(type_name: str, size: int) -> bool:
    """Whether the engine turns heads before it stores them: in a quantised cache, where a matrix fits."""
    return GGML_TYPES[type_name.upper()].block_values > 1 and size % _ROTATION == 0


def _store(place: Place, role: str, cells: TensorShape, width: int, n_rows: int) -> Operator:
    sources = (shape("f32", width, n_rows), shape("i64", n_rows), cells)
    return place.operator(role, "SET_ROWS", cells, sources, kv_sources=(2,))
