"""What a forecast is about: an architecture of the catalogue, of a ``config.json`` or of a GGUF file, under a variant.

To llama.cpp a variant means types of weights and cache, settings, and a form of latent attention.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfsuite.errors import ArchitectureError, PerfsuiteError, meant
from perfsuite.expectation.graph import Settings, refusal
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.paper.passes import DEFAULT_LORA_RANK, LIFE_LATENT
from perfsuite.workload.architecture import Architecture, MixtureOfExperts
from perfsuite.workload.catalog import find_model, names
from perfsuite.workload.config_metadata import is_config, spec_of_config
from perfsuite.workload.model_shape import ModelShape, ModelSpec, check_generates, shape_of
from perfsuite.workload.quantization import quantizations, tensor_types
from perfsuite.workload.scenario import Scenario
from perfsuite.workload.variant import Variant
from perfsuite.workload.weights import Weights, is_path, refuse_two_meanings, resolve

#: The largest counts that mean anything; their products stay within 64 bits.
_MOST = {"--lora-rank": 1 << 16, "--chunk": 1 << 20, "--batch": 1 << 12, "--tile": 1 << 16}


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimisations:
    """A variant and what is changed of it; a value that means nothing is a PerfsuiteError by its option's name."""

    #: None where a file's own tensor types, or `quantization`, say what the weights are.
    variant: Variant | None = None
    #: Weight quantisation in the variant's place, such as ``q4_k_m``.
    quantization: str | None = None
    #: Type of the KV cache in the variant's place.
    kv_type: str | None = None
    #: Rank of adapters on every matrix of a layer; None for the variant's.
    lora_rank: int | None = None
    #: Whether the adapters were added to the weights once before, and so cost nothing in a pass.
    lora_merged: bool = False
    #: Tokens of a prompt that are evaluated at once; None for what the conventions have.
    chunk: int | None = None
    #: Sequences that are generated side by side.
    n_sequences: int = 1
    #: What the prompt and the visible context are padded to a multiple of.
    tile: int = 1

    def __post_init__(self) -> None:
        """Refuse counts below 1 and beyond all use, and merging without adapters."""
        counts = {
            "--lora-rank": self.lora_rank,
            "--chunk": self.chunk,
            "--batch": self.n_sequences,
            "--tile": self.tile,
        }
        for option, value in counts.items():
            if value is not None and not 1 <= value <= _MOST[option]:
                raise PerfsuiteError(f"{option}={value}: expected an integer from 1 to {_MOST[option]}")
        if self.lora_merged and self.adapter_rank is None:
            raise PerfsuiteError("--lora-merged: there is no adapter to merge; give --lora-rank or a variant with LoRA")

    @property
    def adapter_rank(self) -> int | None:
        """Rank of the adapters, merged or not; None without any."""
        if self.lora_rank is None and self.variant is not None and self.variant.lora:
            return DEFAULT_LORA_RANK
        return self.lora_rank

    @property
    def inline_rank(self) -> int | None:
        """Rank of the adapters that run in every pass."""
        return None if self.lora_merged else self.adapter_rank


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An architecture, and the types of its tensors where something other than a variant says them."""

    architecture: Architecture
    #: Tensor name to upper-case ggml type; None where nothing is known of them.
    tensor_types: Mapping[str, str] | None = field(default=None, hash=False)

    @property
    def name(self) -> str:
        """The architecture's."""
        return self.architecture.name


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSubject:
    """A model whose graph only the engine knows."""

    name: str
    #: A specification has no tensors yet, and a shape no types of them.
    model: Weights | ModelShape | ModelSpec


def find_any_subject(text: str) -> Subject | EngineSubject:
    """Find a model by what a user gave.

    Accepted are a name of the catalogue, with a quantisation behind it or without (``smollm2-135m``,
    ``smollm2-135m-q8_0``), the path of a ``config.json`` and the path of a GGUF file. Anything else, and a file that
    cannot be used, is a PerfsuiteError.
    """
    path = Path(text)
    if is_config(path):
        model = spec_of_config(path)
        name = path.resolve().parent.name
        return EngineSubject(name=name, model=model) if isinstance(model, ModelSpec) else Subject(architecture=model)
    is_file = is_path(text) and (path.suffix == ".gguf" or path.is_file())
    if not is_file and ("/" in text or "\\" in text):
        raise PerfsuiteError(f"--architecture={text}: expected a name, a path of a config.json, or one of a .gguf file")
    if is_file or (text not in names() and text.rpartition("-")[2] in quantizations()):
        refuse_two_meanings(text)
        return _of_weights(resolve(text, cache_dir=Path()), text)
    found = find_model(text)
    if isinstance(found, ModelShape):
        check_generates(found, f"--architecture={text}")
        return EngineSubject(name=found.name, model=found)
    return Subject(architecture=found)


def _of_weights(weights: Weights, text: str) -> Subject | EngineSubject:
    check_generates(weights.shape, f"--architecture={text}")
    if weights.known_architecture is None:
        return EngineSubject(name=weights.name, model=weights)
    return Subject(architecture=weights.known_architecture, tensor_types=weights.tensor_types)


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

#: The latent attention of LIFE's variant, in the form that llama.cpp runs.
_LATENT = replace(LIFE_LATENT, absorbed=True)


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
    variant, quantization = optimisations.variant, optimisations.quantization
    if quantization is not None:
        raise PerfsuiteError(f"--quantization={quantization}: {architecture.name} has types of its own; expected none")
    if variant is not None and variant.mla and architecture.mla is None:
        raise PerfsuiteError(
            f"--variant={variant.name}: {architecture.name} has no tensors for latent attention; expected another "
            "variant, or an architecture without types of its own"
        )
