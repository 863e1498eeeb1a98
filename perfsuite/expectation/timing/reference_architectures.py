"""Small architectures of the calibration's own, from which it learns what the engine adds to its operators."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import find
from perfsuite.workload.weights import Weights, synthetic_weights

#: Layers, width, width of the feed-forward block, heads, heads of the cache, vocabulary; with the quantisation.
_SIZES = (
    (20, 768, 2304, 12, 4, 24576, "q8_0"),
    (12, 1280, 3584, 20, 4, 32768, "q4_0"),
    (8, 896, 3072, 14, 14, 16384, "f16"),
    (8, 1536, 4608, 24, 8, 20480, "q4_k_m"),
)


#: Which of them a quick calibration runs, with how many layers. All matrices have whole blocks of every type, and in
#: eight bits the weights are about as many as single operators are spread over. Fewer are found in a cache.
_QUICK = ((0, 10), (1, 4), (3, 3))


def reference_architectures() -> tuple[tuple[Architecture, str], ...]:
    """List the architectures, each with its quantisation; their weights exceed the caches of small machines."""
    base = find("smollm2-135m")
    return tuple(
        (
            replace(
                base,
                name=f"calibration-{n_embd}x{n_layers}",
                n_layers=n_layers,
                n_embd=n_embd,
                n_ff=n_ff,
                n_heads=n_heads,
                n_kv_heads=n_kv_heads,
                n_vocab=n_vocab,
            ),
            quantization,
        )
        for n_layers, n_embd, n_ff, n_heads, n_kv_heads, n_vocab, quantization in _SIZES
    )


def reference_weights(*, cache_dir: Path) -> tuple[Weights, ...]:
    """Describe the synthetic weights of these architectures, which the catalogue does not have."""
    return tuple(
        synthetic_weights(architecture, quantization, cache_dir=cache_dir)
        for architecture, quantization in reference_architectures()
    )


def quick_architectures() -> tuple[Architecture, ...]:
    """List those of a quick calibration: a few of them with fewer layers."""
    architectures = [architecture for architecture, _ in reference_architectures()]
    return tuple(architectures[at].with_layers(n_layers) for at, n_layers in _QUICK)


def quick_weights(quantization: str, *, cache_dir: Path) -> tuple[Weights, ...]:
    """Describe the synthetic weights of these, in one quantisation."""
    return tuple(synthetic_weights(each, quantization, cache_dir=cache_dir) for each in quick_architectures())


def named_weights(name: str, *, cache_dir: Path) -> Weights | None:
    """Describe the weights that have a name here; None for the name of others."""
    base, _, quantization = name.rpartition("-")
    own = (*(architecture for architecture, _ in reference_architectures()), *quick_architectures())
    found = next((each for each in own if each.name == base), None)
    return None if found is None else synthetic_weights(found, quantization, cache_dir=cache_dir)
