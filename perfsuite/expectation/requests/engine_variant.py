"""What a variant means to llama.cpp: its types of weights and cache, its settings, its form of latent attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from perfsuite.errors import ArchitectureError, PerfsuiteError, meant
from perfsuite.expectation.graph import Settings, refusal
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.requests.subject import Optimisations, Subject
from perfsuite.workload.architecture import Architecture, LatentAttention, MixtureOfExperts
from perfsuite.workload.model_shape import shape_of
from perfsuite.workload.quantization import tensor_types
from perfsuite.workload.scenario import Scenario
from perfsuite.workload.weights import Weights

#: ggml's type for each of the variants' formats of weights. Activations are the engine's own affair.
WEIGHT_TYPES: Mapping[str, str] = {"bf16": "bf16", "fp16": "f16", "int8": "q8_0", "int4": "q4_0"}

#: Type of the cache for each of the variants' formats, and for ggml's own names.
CACHE_TYPES: Mapping[str, str] = {
    "bf16": "f16",
    "fp16": "f16",
    "int8": "q8_0",
    "int4": "q4_0",
    **{name: name for name in ("f32", "f16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0")},
}

#: The latent attention of LIFE's variant, in the form that llama.cpp runs. *Source*: LIFE, Table 11.
_LATENT = LatentAttention(
    q_lora_rank=128, kv_lora_rank=128, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, absorbed=True
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest:
    """What the engine is given to run."""

    architecture: Architecture
    tensor_types: Mapping[str, str] = field(hash=False)
    settings: Settings

    def workload(self, scenario: Scenario, *, n_ctx: int, n_ubatch: int) -> LlamaWorkload:
        """Return it as a workload of so many cells of cache and tokens at once; no file stands behind it."""
        weights = Weights(
            name=self.architecture.name,
            gguf_architecture=self.architecture.gguf_architecture,
            known_architecture=self.architecture,
            shape=shape_of(self.architecture),
            tensor_types=self.tensor_types,
            quantization=None,
            path=None,
            identity="",
        )
        return LlamaWorkload(weights=weights, scenario=scenario, settings=self.settings, n_ctx=n_ctx, n_ubatch=n_ubatch)


def engine_request(subject: Subject, optimisations: Optimisations) -> EngineRequest:
    """Translate a subject and its optimisations for the engine.

    Weights are the file's own, or by `WEIGHT_TYPES`; the cache by `CACHE_TYPES`; 'fused' is flash attention, which is
    also what runs without a variant wherever the engine can; 'mla' replaces attention by `with_latent_attention`.
    Raises PerfsuiteError for what the engine has not, or refuses.
    """
    variant, architecture = optimisations.variant, subject.architecture
    if subject.tensor_types is not None:
        _check_own_types(architecture, optimisations)
    if variant is not None and variant.mla and architecture.mla is None:
        architecture = with_latent_attention(architecture)
    settings = _settings(architecture, optimisations)
    if reason := refusal(architecture, settings):
        seen = f"flash attention {settings.flash_attn}, {settings.type_k}"
        raise PerfsuiteError(f"{architecture.name}: {reason}; expected another --variant or --kv-type than {seen}")
    types = subject.tensor_types or tensor_types(architecture, _quantization(optimisations))
    return EngineRequest(architecture=architecture, tensor_types=types, settings=settings)


def with_latent_attention(architecture: Architecture) -> Architecture:
    """Return a DeepSeek-like architecture of the same widths, depth and vocabulary with all layers dense.

    Its heads share one latent key-value vector, which the engine keeps in the cache compressed.
    """
    if architecture.moe is not None or architecture.family.layer_norm_with_bias:
        raise ArchitectureError(
            f"{architecture.name}: no latent attention can be derived for {architecture.gguf_architecture!r}; "
            "expected a dense architecture without biases"
        )
    return replace(
        architecture,
        name=f"{architecture.name}-mla",
        gguf_architecture="deepseek2",
        n_kv_heads=1,
        head_dim=_LATENT.qk_nope_head_dim + _LATENT.qk_rope_head_dim,
        v_head_dim=_LATENT.v_head_dim,
        n_rot=_LATENT.qk_rope_head_dim,
        qkv_bias=False,
        qk_norm=False,
        fused_qkv=False,
        sliding_window=None,
        attn_logit_softcap=None,
        final_logit_softcap=None,
        rope_freq_factors=False,
        mla=_LATENT,
        # The family demands experts; with every layer dense none is ever used.
        moe=MixtureOfExperts(
            n_experts=1, n_experts_used=1, n_ff_expert=1, n_ff_shared=1, n_dense_layers=architecture.n_layers
        ),
    )


def cache_type(optimisations: Optimisations) -> str:
    """Return the engine's type of the KV cache; one that it has not is a PerfsuiteError."""
    variant = optimisations.variant
    wanted = optimisations.kv_type or (variant.kv if variant else "f16")
    cache = CACHE_TYPES.get(wanted)
    if cache is None:
        accepted = ", ".join(CACHE_TYPES) + meant(wanted, CACHE_TYPES)
        raise PerfsuiteError(f"--kv-type={wanted}: unknown to the engine; accepted are {accepted}")
    return cache


def _settings(architecture: Architecture, optimisations: Optimisations) -> Settings:
    variant, cache = optimisations.variant, cache_type(optimisations)
    flash_attn = variant.fused if variant else architecture.family.flash_attention
    return Settings(flash_attn=flash_attn, type_k=cache, type_v=cache, lora_rank=optimisations.inline_rank)


def _quantization(optimisations: Optimisations) -> str:
    if optimisations.quantization is not None:
        return optimisations.quantization
    if optimisations.variant is not None:
        return WEIGHT_TYPES[optimisations.variant.weights]
    raise PerfsuiteError("--variant: missing; expected one, or --quantization, or an architecture with tensor types")


def _check_own_types(architecture: Architecture, optimisations: Optimisations) -> None:
    """Refuse what a file with weights of its own cannot be asked for."""
    variant, quantization = optimisations.variant, optimisations.quantization
    if quantization is not None:
        raise PerfsuiteError(f"--quantization={quantization}: {architecture.name} has types of its own; expected none")
    if variant is not None and variant.mla and architecture.mla is None:
        raise PerfsuiteError(
            f"--variant={variant.name}: {architecture.name} has no tensors for latent attention; expected another "
            "variant, or an architecture without types of its own"
        )
