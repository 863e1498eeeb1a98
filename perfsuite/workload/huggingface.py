"""Architectures from the ``config.json`` of a Hugging Face repository."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from perfsuite.errors import ArchitectureError
from perfsuite.records.codec import LARGEST, shown
from perfsuite.workload.architecture import Architecture, LatentAttention, MixtureOfExperts
from perfsuite.workload.config_classes import GGUF_ARCHITECTURES
from perfsuite.workload.model_config import ModelConfig, missing_key, rope_parameters

#: The classes whose graph the suite writes itself.
CLASSES = (
    *("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "Gemma2ForCausalLM"),
    *("GPTNeoXForCausalLM", "Phi3ForCausalLM", "PLMForCausalLM", "Qwen2MoeForCausalLM", "DeepseekV2ForCausalLM"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Config:
    """A config's values with checked access."""

    where: str
    class_name: str
    values: Mapping[str, Any]

    def integer(self, key: str, default: int | None = None) -> int:
        value = self._value(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or abs(value) > LARGEST:
            raise ArchitectureError(f"{self.where}: {key} is {shown(value)}, expected an integer")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self._value(key, default)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) <= LARGEST:
            raise ArchitectureError(f"{self.where}: {key} is {shown(value)}, expected a number")
        return float(value)

    def flag(self, key: str, *, default: bool) -> bool:
        return bool(self._value(key, default))

    def _value(self, key: str, default: object) -> object:
        value = self.values.get(key)
        if value is None and default is None:
            raise missing_key(self.where, key, self.class_name)
        return default if value is None else value


def from_config(found: ModelConfig, name: str) -> Architecture:
    """Build an architecture from the config of one of `CLASSES`.

    A key that the class needs and the config lacks raises ArchitectureError with the key's name; keys that are optional
    in ``transformers`` get its defaults.
    """
    config = _Config(where=found.where, class_name=found.class_name, values=found.values)
    gguf_architecture = GGUF_ARCHITECTURES[config.class_name]
    if config.flag("mlp_bias", default=False):
        raise ArchitectureError(f"{config.where}: mlp_bias is true, which is not read of {config.class_name}")
    n_embd, n_heads = config.integer("hidden_size"), config.integer("num_attention_heads")
    head_dim = config.integer("head_dim", n_embd // max(n_heads, 1))
    if n_embd % max(n_heads, 1) and not {"head_dim", "kv_lora_rank"} & set(config.values):
        raise ArchitectureError(
            f"{config.where}: num_attention_heads is {n_heads}, expected a divisor of hidden_size ({n_embd})"
        )
    fields: dict[str, Any] = {
        "name": name,
        "gguf_architecture": gguf_architecture,
        "n_layers": config.integer("num_hidden_layers"),
        "n_embd": n_embd,
        "n_heads": n_heads,
        "n_kv_heads": config.integer("num_key_value_heads", n_heads),
        "head_dim": head_dim,
        "v_head_dim": head_dim,
        "n_ff": config.integer("intermediate_size"),
        "n_vocab": config.integer("vocab_size"),
        "n_ctx_train": config.integer("max_position_embeddings"),
        "tied_embeddings": config.flag("tie_word_embeddings", default=gguf_architecture in ("gemma2", "plm")),
        "n_rot": head_dim,
        "norm_eps": config.number("layer_norm_eps" if gguf_architecture == "gptneox" else "rms_norm_eps"),
        **_rope(config),
    }
    fields.update(_SPECIFIC[gguf_architecture](config, head_dim))
    return Architecture(**fields)


def _rope(config: _Config) -> dict[str, Any]:
    parameters = _rope_of(config)
    base = parameters.number("rope_theta", 10000.0)
    if parameters.values["rope_type"] == "llama3":
        return {"rope_freq_base": base, "rope_freq_factors": True}
    if parameters.values["rope_type"] in ("longrope", "su"):
        original = config.integer(
            "original_max_position_embeddings", parameters.values.get("original_max_position_embeddings")
        )
        return {"rope_freq_base": base, "rope_freq_factors": True, "n_ctx_orig": original}
    return {"rope_freq_base": base}


def _n_rot(config: _Config, head_dim: int, default: float) -> int:
    return int(_rope_of(config).number("partial_rotary_factor", default) * head_dim)


def _rope_of(config: _Config) -> _Config:
    return replace(config, values=rope_parameters(config.values))


def _gptneox(config: _Config, head_dim: int) -> dict[str, Any]:
    return {
        "qkv_bias": config.flag("attention_bias", default=True),
        "fused_qkv": True,
        "n_rot": _n_rot(config, head_dim, 0.25),
        "parallel_residual": config.flag("use_parallel_residual", default=True),
    }


def _qwen2moe(config: _Config, head_dim: int) -> dict[str, Any]:
    experts = MixtureOfExperts(
        n_experts=config.integer("num_experts"),
        n_experts_used=config.integer("num_experts_per_tok"),
        n_ff_expert=config.integer("moe_intermediate_size"),
        n_ff_shared=config.integer("shared_expert_intermediate_size"),
    )
    return {"qkv_bias": True, "moe": experts}


def _deepseek2(config: _Config, head_dim: int) -> dict[str, Any]:
    n_ff_expert = config.integer("moe_intermediate_size")
    experts = MixtureOfExperts(
        n_experts=config.integer("n_routed_experts"),
        n_experts_used=config.integer("num_experts_per_tok"),
        n_ff_expert=n_ff_expert,
        n_ff_shared=n_ff_expert * config.integer("n_shared_experts"),
        n_dense_layers=config.integer("first_k_dense_replace", 0),
        normalize_weights=config.flag("norm_topk_prob", default=False),
        weights_scale=config.number("routed_scaling_factor", 1.0),
    )
    return {**_latent(config, absorbed=True), "n_kv_heads": 1, "moe": experts}


def _latent(config: _Config, *, absorbed: bool) -> dict[str, Any]:
    has_query_rank = config.values.get("q_lora_rank") is not None
    latent = LatentAttention(
        q_lora_rank=config.integer("q_lora_rank") if has_query_rank else None,
        kv_lora_rank=config.integer("kv_lora_rank"),
        qk_nope_head_dim=config.integer("qk_nope_head_dim"),
        qk_rope_head_dim=config.integer("qk_rope_head_dim"),
        v_head_dim=config.integer("v_head_dim"),
        absorbed=absorbed,
    )
    return {
        "head_dim": latent.qk_nope_head_dim + latent.qk_rope_head_dim,
        "v_head_dim": latent.v_head_dim,
        "n_rot": latent.qk_rope_head_dim,
        "mla": latent,
    }


#: The fields that each architecture has for itself, from its config and the size of a head.
_SPECIFIC: Mapping[str, Callable[[_Config, int], dict[str, Any]]] = {
    "llama": lambda config, head_dim: {"qkv_bias": config.flag("attention_bias", default=False)},
    "qwen2": lambda config, head_dim: {"qkv_bias": True},
    "qwen3": lambda config, head_dim: {"qkv_bias": config.flag("attention_bias", default=False), "qk_norm": True},
    "gemma2": lambda config, head_dim: {
        "sliding_window": config.integer("sliding_window"),
        "attn_logit_softcap": config.number("attn_logit_softcapping"),
        "final_logit_softcap": config.number("final_logit_softcapping"),
    },
    "gptneox": _gptneox,
    # llama.cpp switches the sliding window of this family off.
    "phi3": lambda config, head_dim: {
        "fused_qkv": True,
        "n_rot": _n_rot(config, head_dim, 1.0),
    },
    "plm": lambda config, head_dim: _latent(config, absorbed=False),
    "qwen2moe": _qwen2moe,
    "deepseek2": _deepseek2,
}
