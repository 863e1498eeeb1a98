"""What the KV cache takes: exact, for it is allocated whole when a context is made.

*Source*: ``src/llama-kv-cache.cpp`` of llama.cpp, as shipped with llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from dataclasses import replace

from perfsuite.expectation.cases import LlamaWorkload
from perfsuite.expectation.graph import KV_PADDING
from perfsuite.expectation.graphs.kv_cache import cache_of
from perfsuite.expectation.graphs.place import Place
from perfsuite.expectation.memory.compute_buffer import worst_batch
from perfsuite.expectation.tensor_shape import row_bytes


def kv_bytes(workload: LlamaWorkload) -> int:
    """Return the bytes of the KV caches of all layers.

    ``sum over layers of cells (row(h_kv d_k, type_k) + row(h_kv d_v, type_v))`` with the cells padded to 256, and fewer
    of them where a layer with a sliding window has a cache of its own. Absorbed latent attention keeps one latent head
    and has no values beside it.
    """
    place = workload.place(replace(worst_batch(workload), n_ctx=-(-workload.n_ctx // KV_PADDING) * KV_PADDING))
    return sum(_layer_bytes(place.at_layer(layer)) for layer in range(place.architecture.n_layers))


def _layer_bytes(place: Place) -> int:
    cache, mla = cache_of(place), place.architecture.mla
    keys = row_bytes(cache.type_k, cache.width_k)
    values = 0 if mla is not None and mla.absorbed else row_bytes(cache.type_v, cache.width_v)
    return cache.n_cells * (keys + values)
