"""The KV cache of a layer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.expectation.graphs.kv_cache import KvCache, cache_of, window_of
from perfsuite.expectation.graphs.place import Place
from perfsuite.expectation.graphs.request import Batch, Settings

from ...catalogue_workloads import catalogue_weights


def place(name: str, settings: Settings, *, layer: int = 0, n_used: int = 6000) -> Place:
    """Return a layer of a catalogue entry at the end of 6000 positions of 8192."""
    weights = catalogue_weights(f"{name}-f16")
    return Place(
        architecture=weights.architecture,
        tensor_types=weights.tensor_types,
        batch=Batch(n_tokens=1, n_outputs=1, n_used=n_used, n_ctx=8192),
        settings=settings,
        n=1,
        layer=layer,
    )


def cache(name: str, settings: Settings, *, layer: int = 0) -> KvCache:
    """Return the cache of that layer."""
    return cache_of(place(name, settings, layer=layer))


@pytest.mark.parametrize(
    ("name", "rotation_k", "rotation_v"),
    [("smollm2-135m", 64, 64), ("llama-2-7b", 128, 64), ("gemma-2-2b", 256, 64), ("deepseek-v2-lite", None, None)],
)
def test_quantised_heads_are_turned(name: str, rotation_k: int | None, rotation_v: int | None) -> None:
    """Keys by the largest power of 2 in a head, values by 64; a latent head, and what is not quantised, by none."""
    quantised, plain = (cache(name, Settings(type_k=kind, type_v=kind)) for kind in ("q8_0", "f32"))
    assert (quantised.rotation_k, quantised.rotation_v) == (rotation_k, rotation_v)
    assert (plain.rotation_k, plain.rotation_v) == (None, None)
    assert cache("plm-1.8b", Settings(flash_attn=False, type_k="q8_0")).rotation_k == 64  # which divides 192


def test_an_absorbed_latent_is_one_head() -> None:
    """The cache of DeepSeek-V2-Lite holds 512 + 64 elements a position, of which 512 are the values."""
    kept = cache("deepseek-v2-lite", Settings())
    assert (kept.width_k, kept.width_v) == (576, 512)


def test_every_second_layer_of_gemma_may_keep_its_window_alone() -> None:
    """Asked for small caches, even layers keep 4096 positions and a batch, the others all."""
    for swa_full, even in ((False, (4608, 4608)), (True, (8192, 6144))):
        kept = [cache("gemma-2-2b", Settings(swa_full=swa_full), layer=layer) for layer in range(3)]
        assert [(each.n_cells, each.n_kv) for each in kept] == [even, (8192, 6144), even]
    assert [window_of(place("gemma-2-2b", Settings(), layer=layer)) for layer in range(4)] == [4096, None] * 2


def test_without_a_window_small_caches_change_nothing() -> None:
    """A Llama has one kind of layer, whatever window its file tells."""
    assert cache("smollm2-135m", Settings(swa_full=False)) == cache("smollm2-135m", Settings())
    at = place("smollm2-135m", Settings(swa_full=False))
    assert cache_of(replace(at, architecture=replace(at.architecture, sliding_window=512))) == cache_of(at)
