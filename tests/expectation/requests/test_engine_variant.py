"""What a variant means to llama.cpp."""

from __future__ import annotations

from typing import Any

import pytest

from perfsuite.errors import ArchitectureError, PerfsuiteError
from perfsuite.expectation.graph import Settings
from perfsuite.expectation.requests.engine_variant import EngineRequest, engine_request, with_latent_attention
from perfsuite.expectation.requests.optimisations import Optimisations
from perfsuite.expectation.requests.subject import Subject, find_subject
from perfsuite.workload.catalog import find, names
from perfsuite.workload.tensors import tensor_specs
from perfsuite.workload.variant import find_variant

LLAMA2 = find_subject("llama-2-7b")


def requested(variant: str | None, subject: Subject = LLAMA2, **changes: Any) -> EngineRequest:
    """Translate a variant by its name."""
    found = None if variant is None else find_variant(variant)
    return engine_request(subject, Optimisations(variant=found, **changes))


@pytest.mark.parametrize(
    ("variant", "changes", "weights", "settings"),
    [
        ("bf16-bf16", {}, "BF16", Settings(flash_attn=False)),
        ("bf16-int4", {}, "Q4_0", Settings(flash_attn=False)),
        ("bf16-int4-fused", {}, "Q4_0", Settings()),
        ("bf16-int4-kv4", {}, "Q4_0", Settings(type_k="q4_0", type_v="q4_0")),
        ("bf16-int4-lora", {}, "Q4_0", Settings(lora_rank=16)),
        ("bf16-int4-lora", {"lora_merged": True}, "Q4_0", Settings()),
        ("QuaRot-w4a4kv4", {}, "Q4_0", Settings(type_k="q4_0", type_v="q4_0")),
        ("fp16-fp16", {}, "F16", Settings(flash_attn=False)),
        (
            *("bf16-int4-kv4", {"quantization": "q8_0", "kv_type": "int8", "lora_rank": 4}, "Q8_0"),
            Settings(type_k="q8_0", type_v="q8_0", lora_rank=4),
        ),
        (None, {"quantization": "q8_0"}, "Q8_0", Settings()),
    ],
)
def test_variants_become_types_and_settings(
    variant: str | None, changes: dict[str, Any], weights: str, settings: Settings
) -> None:
    """Weights, cache, flash attention and adapters follow from the variant, and options take its place."""
    request = requested(variant, **changes)
    assert request.tensor_types["blk.5.ffn_up.weight"] == weights
    assert request.settings == settings
    assert request.architecture == LLAMA2.architecture


def test_without_flash_attention_the_engine_runs_without() -> None:
    """Where no variant says anything, the family decides."""
    assert requested(None, find_subject("plm-1.8b"), quantization="q8_0").settings == Settings(flash_attn=False)


def test_tensors_of_the_subjects_own_count() -> None:
    """A variant changes nothing of the types that a file has."""
    request = requested("bf16-int4", find_subject("smollm2-135m-q8_0"))
    assert request.tensor_types["blk.5.ffn_up.weight"] == "Q8_0"


def test_latent_attention_is_derived() -> None:
    """Widths, depth and vocabulary stay; the cache holds one latent head of 128 + 64."""
    request = requested("bf16-int4-mla")
    derived = request.architecture
    assert derived == with_latent_attention(LLAMA2.architecture)
    assert derived.gguf_architecture == "deepseek2"
    assert (derived.n_embd, derived.n_layers, derived.n_ff, derived.n_vocab) == (4096, 32, 11008, 32000)
    assert derived.mla is not None
    assert (derived.n_kv_heads, derived.mla.kv_lora_rank, derived.mla.qk_rope_head_dim) == (1, 128, 64)
    assert not any("exps" in spec.name for spec in tensor_specs(derived))
    assert request.settings == Settings()


@pytest.mark.parametrize("name", [name for name in names() if find(name).moe is None])
def test_latent_attention_is_derived_or_refused(name: str) -> None:
    """Every dense architecture gets one, or is refused for its biases."""
    architecture = find(name)
    if architecture.family.layer_norm_with_bias:
        with pytest.raises(ArchitectureError, match="no latent attention can be derived for 'gptneox'; expected"):
            with_latent_attention(architecture)
    else:
        assert with_latent_attention(architecture).n_layers == architecture.n_layers


def test_latent_attention_of_its_own_stays() -> None:
    """An architecture that has latent attention keeps it under the variant."""
    subject = find_subject("deepseek-v2-lite")
    assert requested("bf16-int4-mla", subject).architecture == subject.architecture


@pytest.mark.parametrize(
    ("variant", "subject", "changes", "told"),
    [
        ("bf16-int4", "llama-2-7b", {"kv_type": "int4"}, r"llama-2-7b: a quantised cache of values .* needs flash"),
        ("bf16-int4", "llama-2-7b", {"kv_type": "int3"}, r"--kv-type=int3: unknown to the engine; accepted are bf16, "),
        ("bf16-int4-fused", "plm-1.8b", {}, r"plm-1\.8b: 'plm' cannot run with flash attention; expected another"),
        ("bf16-int4", "llama-2-7b", {"quantization": "q9"}, r"quantisation 'q9' is unknown; accepted are f32, "),
        (None, "smollm2-135m-q8_0", {"quantization": "q4_0"}, r"--quantization=q4_0: smollm2-135m has types of its"),
        ("bf16-int4-mla", "smollm2-135m-q8_0", {}, r"--variant=bf16-int4-mla: smollm2-135m has no tensors for latent"),
        (None, "llama-2-7b", {}, r"--variant: missing; expected one, or --quantization, or an architecture with"),
    ],
)
def test_what_the_engine_has_not_is_refused(
    variant: str | None, subject: str, changes: dict[str, Any], told: str
) -> None:
    """The message names what was asked for and what is accepted."""
    with pytest.raises(PerfsuiteError, match=told):
        requested(variant, find_subject(subject), **changes)
