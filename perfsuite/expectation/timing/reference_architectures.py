"""Small models of the calibration's own, from which it learns what the engine adds to its operators.

Most are architectures whose graph the suite writes itself. Those with states are models that are listed in files, and
are run where the engine says their graphs.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from perfsuite.workload.architecture import Architecture, MixtureOfExperts
from perfsuite.workload.catalog import calibration_models, find
from perfsuite.workload.model_shape import ModelShape
from perfsuite.workload.weights import Weights, synthetic_weights

#: A cache of 32 MiB holds a fifth of 150 MB between two tokens, and hardly any of twice as much, as of most models.
#: Layers, width, width of the feed-forward block, heads, heads of the cache, vocabulary; with the quantisation.
_SIZES = (
    (36, 768, 2304, 12, 4, 24576, "q8_0"),
    (24, 1280, 3584, 20, 4, 32768, "q4_0"),
    (14, 896, 3072, 14, 14, 16384, "f16"),
    (16, 1536, 4608, 24, 8, 20480, "q4_k_m"),
)
#: The types of the models that are listed, in the order of their names.
_LISTED_TYPES = ("q4_k_m", "q8_0", "q8_0", "q4_0")

#: Which of them a quick calibration runs, with how many layers. All matrices have whole blocks of every type, and in
#: eight bits the weights are about as many as single operators are spread over. Fewer are found in a cache.
_QUICK = ((0, 10), (1, 4), (3, 3))


def reference_architectures() -> tuple[tuple[Architecture, str], ...]:
    """List the architectures, each with its quantisation; their weights exceed the caches of small machines."""
    base = find("smollm2-135m")
    dense = tuple(
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
    return (*dense, _with_experts())


def _with_experts() -> tuple[Architecture, str]:
    architecture = replace(
        find("qwen1.5-moe-a2.7b"),
        name="calibration-experts-1024x6",
        n_layers=6,
        n_embd=1024,
        n_heads=16,
        n_kv_heads=4,
        head_dim=64,
        v_head_dim=64,
        n_rot=64,
        n_vocab=16384,
        moe=MixtureOfExperts(n_experts=24, n_experts_used=3, n_ff_expert=768, n_ff_shared=1536),
    )
    return architecture, "q8_0"


def reference_models() -> tuple[tuple[Architecture | ModelShape, str], ...]:
    """List these, and the models with states; each with its quantisation."""
    return (*reference_architectures(), *zip(calibration_models(), _LISTED_TYPES, strict=True))


def reference_weights(*, cache_dir: Path) -> tuple[Weights, ...]:
    """Describe the synthetic weights of these models, which the catalogue does not have."""
    return tuple(
        synthetic_weights(model, quantization, cache_dir=cache_dir) for model, quantization in reference_models()
    )


def quick_architectures() -> tuple[Architecture, ...]:
    """List those of a quick calibration: a few of them with fewer layers."""
    architectures = [architecture for architecture, _ in reference_architectures()]
    return tuple(architectures[at].with_layers(n_layers) for at, n_layers in _QUICK)


def quick_weights(quantization: str, *, cache_dir: Path) -> tuple[Weights, ...]:
    """Describe the synthetic weights of these, in one quantisation."""
    return tuple(synthetic_weights(each, quantization, cache_dir=cache_dir) for each in quick_architectures())
