"""Synthetic LoRA adapters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gguf import GGUFReader

from perfsuite.workload.adapter import adapter_weights
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.weights import synthetic_weights


def test_an_adapter_has_a_pair_for_each_matrix(tiny: Callable[..., Architecture], tmp_path: Path) -> None:
    """Beside each matrix of a layer lie two of the rank, as large as it on their other sides."""
    weights = synthetic_weights(tiny(n_layers=1), "q8_0", cache_dir=tmp_path)
    adapter = adapter_weights(weights, 4, cache_dir=tmp_path / "new")
    assert adapter.path is not None
    shapes = {tensor.name: tuple(map(int, tensor.shape)) for tensor in GGUFReader(adapter.path).tensors}
    assert len(shapes) == 2 * 7
    assert (shapes["blk.0.ffn_down.weight.lora_a"], shapes["blk.0.ffn_down.weight.lora_b"]) == ((512, 4), (4, 256))


def test_an_adapter_is_written_once(tiny: Callable[..., Architecture], tmp_path: Path) -> None:
    """A rank of an architecture has one file, which any weights of it share in all but the name."""
    weights = synthetic_weights(tiny(n_layers=1), "q8_0", cache_dir=tmp_path)
    first, again = (adapter_weights(weights, 4, cache_dir=tmp_path) for _ in range(2))
    other = adapter_weights(weights, 8, cache_dir=tmp_path)
    assert first == again
    assert (first.identity, first.path) != (other.identity, other.path)
    assert [path.name for path in tmp_path.glob(".*")] == []
