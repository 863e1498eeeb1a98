"""The KV cache, by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.expectation.cases import llama_workload
from perfsuite.expectation.memory.kv_memory import kv_bytes
from perfsuite.workload.scenario import find_scenario

from ...catalogue_workloads import catalogue_weights

NOWHERE = Path("/nowhere")


@pytest.mark.parametrize(
    ("name", "scenario", "type_name", "expected"),
    [
        # 30 layers, 3 heads of 64, keys and values of 2 bytes.
        ("smollm2-135m-q8_0", "p200-g8", "f16", 256 * 30 * 2 * 3 * 64 * 2),
        ("smollm2-135m-q8_0", "p256-g8", "f16", 512 * 30 * 2 * 3 * 64 * 2),
        # 34 bytes for 32 values.
        ("smollm2-135m-q8_0", "p200-g8", "q8_0", 256 * 30 * 2 * 3 * 64 * 34 // 32),
        # One latent head of 512 + 64, no values beside it.
        ("deepseek-v2-lite-l3-q4_0", "p200-g8", "f16", 256 * 3 * 576 * 2),
        # Decompressed: 16 heads of 192 and of 128.
        ("plm-1.8b-l2-q4_0", "p200-g8", "f16", 256 * 2 * 16 * (192 + 128) * 2),
    ],
)
def test_cells_times_heads_times_sizes(name: str, scenario: str, type_name: str, expected: int) -> None:
    """Positions are padded to 256; latent attention absorbed keeps one head."""
    weights = catalogue_weights(name)
    workload = llama_workload(weights, find_scenario(scenario), type_k=type_name, type_v=type_name)
    assert kv_bytes(workload) == expected


def test_a_sliding_window_has_fewer_cells() -> None:
    """Of Gemma 2's two layers one keeps the window, a batch and no more, unless all positions are asked for."""
    weights = catalogue_weights("gemma-2-2b-l2-q4_0")
    full = llama_workload(weights, find_scenario("p8000-g100"))
    ring = replace(full, settings=replace(full.settings, swa_full=False))
    position = 2 * 4 * 256 * 2
    assert kv_bytes(full) == 2 * 8192 * position
    assert kv_bytes(ring) == (8192 + 4096 + 512) * position
