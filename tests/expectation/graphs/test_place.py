"""The KV cache of a layer."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.expectation.graphs.operator import Batch, Settings, refusal
from perfsuite.expectation.graphs.place import KvCache, Place, cache_of, window_of
from perfsuite.workload.catalog import find, names

from ...catalogue_workloads import catalogue_weights


@pytest.mark.parametrize("name", names())
def test_the_engines_own_settings_are_refused_by_none(name: str) -> None:
    """An F16 cache is accepted by all, with flash attention where the architecture has it and without it.

    Only values are transposed in the cache without flash attention, and cannot be quantised.
    """
    architecture = find(name)
    assert refusal(architecture, Settings(flash_attn=False)) is None
    assert refusal(find("smollm2-135m"), Settings(flash_attn=False, type_k="q8_0")) is None
    assert (refusal(architecture, Settings()) is None) is architecture.family.flash_attention


@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("smollm2-135m", Settings(flash_attn=False, type_v="q8_0"), "a quantised cache of values (type_v is q8_0)"),
        ("smollm2-135m", Settings(type_k="q4_k"), "type_k is q4_k, whose block does not divide heads of 64"),
        ("deepseek-v2-lite", Settings(type_k="q8_0"), "keys and values in one tensor, not q8_0, f16"),
        ("plm-1.8b", Settings(), "'plm' cannot run with flash attention"),
    ],
)
def test_a_refusal_tells_the_setting_and_its_value(name: str, settings: Settings, reason: str) -> None:
    assert re.search(re.escape(reason), refusal(find(name), settings) or "")


@given(st.integers(0, 5000), st.integers(1, 20))
def test_the_visible_cache_is_padded(n_used: int, n_blocks: int) -> None:
    """Attention works on a multiple of 256 positions that holds those in use, and no more than there are."""
    batch = Batch(n_tokens=1, n_outputs=1, n_used=n_used, n_ctx=256 * n_blocks)
    assert batch.n_kv % 256 == 0
    assert 256 <= batch.n_kv <= batch.n_ctx
    assert batch.n_kv == batch.n_ctx or n_used <= batch.n_kv < n_used + 256 + 256 * (n_used == 0)


@given(st.integers(0, 9000), st.integers(1, 40), st.integers(1, 5000), st.integers(1, 600))
def test_a_window_never_has_more_than_the_whole_cache(n_used: int, n_blocks: int, window: int, n_ubatch: int) -> None:
    """A window's cache holds the window and a batch, as far as there are positions, and shows no more than is used."""
    batch = Batch(n_tokens=1, n_outputs=1, n_used=n_used, n_ctx=256 * n_blocks, n_ubatch=n_ubatch)
    cells = batch.window_cells(window)
    assert cells % 256 == 0
    assert min(batch.n_ctx, window + n_ubatch) <= cells <= batch.n_ctx
    assert batch.window_n_kv(window) == min(cells, batch.n_kv)


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


def test_every_second_layer_of_gemma_may_keep_its_window_alone() -> None:
    """Asked for small caches, even layers keep 4096 positions and a batch, the others all."""
    for swa_full, even in ((False, (4608, 4608)), (True, (8192, 6144))):
        kept = [cache("gemma-2-2b", Settings(swa_full=swa_full), layer=layer) for layer in range(3)]
        assert [(each.n_cells, each.n_kv) for each in kept] == [even, (8192, 6144), even]
    assert [window_of(place("gemma-2-2b", Settings(), layer=layer)) for layer in range(4)] == [4096, None] * 2
