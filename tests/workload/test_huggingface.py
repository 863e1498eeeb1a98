from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import ArchitectureError
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.config_classes import GGUF_ARCHITECTURES
from perfsuite.workload.config_metadata import spec_of_config
from perfsuite.workload.huggingface import CLASSES

_LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 384,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
}
_LATENT = {"kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 32, "v_head_dim": 64}
_EXTRA: dict[str, dict[str, Any]] = {
    "Gemma2ForCausalLM": {"sliding_window": 32, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0},
    "GPTNeoXForCausalLM": {"rotary_pct": 0.25, "layer_norm_eps": 1e-5},
    "PLMForCausalLM": _LATENT,
    "Qwen2MoeForCausalLM": {
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 128,
        "shared_expert_intermediate_size": 256,
    },
    "DeepseekV2ForCausalLM": {
        **_LATENT,
        "n_routed_experts": 4,
        "n_shared_experts": 2,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 128,
    },
}


def _config(of: str = "LlamaForCausalLM", **changes: Any) -> dict[str, Any]:
    return {**_LLAMA, **_EXTRA.get(of, {}), "architectures": [of], **changes}


def from_config(config: dict[str, Any] | Path, **changes: str) -> Architecture:
    found = spec_of_config(config, **changes)
    assert isinstance(found, Architecture)
    return found


@pytest.mark.parametrize("of", CLASSES)
def test_every_class_converts(of: str) -> None:
    assert from_config(_config(of)).gguf_architecture == GGUF_ARCHITECTURES[of]


@pytest.mark.parametrize("of", CLASSES)
def test_every_needed_key_is_named_when_missing(of: str) -> None:
    config = _config(of)
    for key in config:
        rest = {other: value for other, value in config.items() if other != key}
        try:
            from_config(rest, name="m")
        except ArchitectureError as error:
            assert str(error).startswith(f"config: key {key!r} is missing")  # noqa: PT017


def test_defaults_are_those_of_transformers() -> None:
    """Absent KV heads, head size, RoPE base and tying get the library's defaults."""
    found = from_config(_config())
    assert (found.n_kv_heads, found.head_dim, found.rope_freq_base) == (4, 64, 10000.0)
    assert not found.tied_embeddings
    assert from_config(_config("Gemma2ForCausalLM")).tied_embeddings


@pytest.mark.parametrize(
    "rope",
    [
        {"rotary_emb_base": 50000, "rotary_pct": 0.25},
        {"rope_theta": 50000, "partial_rotary_factor": 0.25},
        {"rope_parameters": {"rope_type": "default", "rope_theta": 50000, "partial_rotary_factor": 0.25}},
    ],
)
def test_base_and_turned_part_are_read_under_each_name(rope: dict[str, Any]) -> None:
    config = {key: value for key, value in _config("GPTNeoXForCausalLM").items() if key != "rotary_pct"}
    found = from_config({**config, **rope})
    assert (found.rope_freq_base, found.n_rot) == (50000.0, 16)


@pytest.mark.parametrize("key", ["rope_scaling", "rope_parameters"])
def test_rope_factors_follow_the_scaling(key: str) -> None:
    """Llama 3's scaling puts frequency factors into the file, under the old and the new key."""
    scaling: dict[str, Any] = {key: {"rope_type": "llama3", "rope_theta": 500000.0}}
    found = from_config(_config(**scaling))
    assert found.rope_freq_factors
    assert found.rope_freq_base == 500000.0


def test_long_rope_needs_the_original_context() -> None:
    scaling = {"type": "longrope", "original_max_position_embeddings": 128}
    found = from_config(_config("Phi3ForCausalLM", rope_scaling=scaling, partial_rotary_factor=0.75))
    assert (found.rope_freq_factors, found.n_ctx_orig, found.n_rot) == (True, 128, 48)
    with pytest.raises(ArchitectureError, match="key 'original_max_position_embeddings' is missing"):
        from_config(_config("Phi3ForCausalLM", rope_scaling={"type": "longrope"}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architectures": []}, "key 'architectures' is missing"),
        ({"hidden_size": "wide"}, "hidden_size is 'wide', expected an integer"),
        ({"rms_norm_eps": "tiny"}, "rms_norm_eps is 'tiny', expected a number"),
        ({"mlp_bias": True}, "mlp_bias is true, which is not read of LlamaForCausalLM"),
        ({"num_attention_heads": 0}, "n_heads is 0, expected a positive integer"),
    ],
)
def test_wrong_values_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ArchitectureError, match=message):
        from_config(_config(**changes))
