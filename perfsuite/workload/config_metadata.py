"""The GGUF metadata of a model of any architecture from its ``config.json``.

*Source*: the keys that ``conversion/`` of llama.cpp, as shipped with llama-cpp-python 0.3.36, reads and writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from perfsuite.errors import ArchitectureError
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.config_classes import GGUF_ARCHITECTURES
from perfsuite.workload.huggingface import CLASSES, from_config, load_config
from perfsuite.workload.model_shape import MetadataValue
from perfsuite.workload.model_spec import ModelSpec

_Config = Mapping[str, Any]

#: Keys of the metadata, and those of a config that one of is there under.
_KEYS: Mapping[str, tuple[str, ...]] = {
    "vocab_size": ("vocab_size",),
    "context_length": ("max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length", "seq_length"),
    "embedding_length": ("hidden_size", "n_embd", "d_model", "dim"),
    "block_count": ("num_hidden_layers", "n_layers", "n_layer", "num_layers"),
    "feed_forward_length": ("intermediate_size_mlp", "intermediate_size", "ffn_hidden_size", "n_inner", "d_ff"),
    "attention.head_count": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "attention.head_count_kv": ("num_key_value_heads", "n_kv_heads", "multi_query_group_num", "num_attention_groups"),
    "attention.key_length": ("head_dim", "kv_channels", "attention_head_dim"),
    "attention.value_length": ("head_dim", "kv_channels", "attention_head_dim"),
    "attention.layer_norm_rms_epsilon": ("rms_norm_eps", "norm_eps", "layernorm_epsilon"),
    "attention.layer_norm_epsilon": ("layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps"),
    "attention.sliding_window": ("sliding_window", "local_attention"),
    "attention.sliding_window_pattern": ("global_attn_every_n_layers",),
    "attention.q_lora_rank": ("q_lora_rank",),
    "attention.kv_lora_rank": ("kv_lora_rank",),
    "attention.scale": ("attention_multiplier",),
    "attention.shared_kv_layers": ("num_kv_shared_layers",),
    "attn_logit_softcapping": ("attn_logit_softcapping",),
    "final_logit_softcapping": ("final_logit_softcapping",),
    "embedding_length_per_layer_input": ("hidden_size_per_layer_input",),
    "embedding_scale": ("embedding_multiplier", "scale_emb"),
    "residual_scale": ("residual_multiplier",),
    "logit_scale": ("logits_scaling", "logit_scale"),
    "use_parallel_residual": ("use_parallel_residual",),
    "expert_count": ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"),
    "expert_used_count": ("num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk", "moe_top_k"),
    "expert_feed_forward_length": ("moe_intermediate_size", "expert_ffn_hidden_size", "moe_ffn_hidden_size"),
    "expert_shared_feed_forward_length": ("shared_expert_intermediate_size", "shared_intermediate_size"),
    "expert_shared_count": ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert"),
    "expert_group_count": ("n_group",),
    "expert_group_used_count": ("topk_group",),
    "expert_weights_scale": ("routed_scaling_factor",),
    "expert_weights_norm": ("norm_topk_prob",),
    "leading_dense_block_count": ("first_k_dense_replace", "moe_layer_start_index", "num_dense_layers"),
    "interleave_moe_layer_step": ("interleave_moe_layer_step", "moe_layer_interval"),
    "moe_every_n_layers": ("moe_every_n_layers",),
    "full_attention_interval": ("full_attention_interval",),
    "hidden_activation": ("hidden_activation",),
    "shortconv.l_cache": ("conv_L_cache",),
    "rope.freq_base_swa": ("rope_local_base_freq", "local_rope_theta"),
    "tokenizer.ggml.token_type_count": ("type_vocab_size",),
}

#: Keys that hold floating-point numbers whatever a config has.
_NUMBERS = ("epsilon", "scale", "softcapping", "freq_base", "freq_base_swa", "clamp_kqv")

#: Numbers of the functions that make a router's scores. Source: src/llama-hparams.h of llama.cpp.
_GATES = {"softmax": 1, "sigmoid": 2, "sqrtsoftplus": 4}

#: Under any of these a config says that projections have biases.
_BIASES = ("attention_bias", "use_qkv_bias", "qkv_bias", "use_bias", "add_qkv_bias", "qkv_proj_bias")

#: Architectures with biases, and with one matrix for tokens in and out, where their config does not say.
_BIASED = ("qwen2", "qwen2vl", "qwen2moe", "dream", "bert", "gpt-oss")
_TIED = ("gemma", "gemma3", "gemma3n", "gemma4", "command-r", "cohere2", "starcoder2", "lfm2", "lfm2moe", "bloom")
_LATENT = ("deepseek2", "deepseek32", "glm-dsa", "mistral4", "kimi-linear", "hy_v4")

#: Architectures whose sliding windows the engine reads layer by layer.
_WINDOWED = ("exaone4", "olmo2", "gemma4", "mimo2", "step35", "granite_swa", "cohere2moe", "exaone-moe", "afmoe")


def spec_of_config(config: _Config | Path) -> Architecture | ModelSpec:
    """Return what a config describes: an architecture that the suite knows itself, or a model that the engine knows.

    Raises ArchitectureError where it names no class that llama.cpp converts, or lacks what every model has.
    """
    where = str(config) if isinstance(config, Path) else "config"
    whole = load_config(config) if isinstance(config, Path) else config
    named, text = whole.get("architectures"), whole.get("text_config")
    name = str(named[0]) if isinstance(named, list | tuple) and named else "None"
    if name in CLASSES:
        return from_config(config)
    if name not in GGUF_ARCHITECTURES:
        raise ArchitectureError(f"{where}: architecture {name!r} is none that llama.cpp converts")
    values = {**whole, **(text if isinstance(text, Mapping) else {})}
    architecture = GGUF_ARCHITECTURES[name]
    try:
        metadata = _metadata(values, architecture)
        wanted = tuple(_wanted(values, architecture))
    except KeyError as error:
        raise ArchitectureError(f"{where}: key {error} is missing, which {name} needs") from error
    except (TypeError, ValueError, AttributeError, ArithmeticError, LookupError) as error:
        raise ArchitectureError(f"{where}: is not a config of {name}: {error}") from error
    return ModelSpec(architecture=architecture, metadata=metadata, wanted=wanted)


def _metadata(values: _Config, architecture: str) -> Mapping[str, MetadataValue]:
    metadata = {**_plain(values), **_rope(values), **_experts(values), **_SPECIFIC.get(architecture, _nothing)(values)}
    if architecture in _LATENT:
        metadata |= _latent(values)
    if architecture in _WINDOWED and "layer_types" in values:
        kinds = values["layer_types"]
        metadata["attention.sliding_window_pattern"] = tuple(each == "sliding_attention" for each in kinds)
    for key in ("embedding_length", "block_count"):
        if not isinstance(metadata.get(key), int):
            raise KeyError(_KEYS[key][0])
    return {key: value for key, value in metadata.items() if value is not None}


def _nothing(values: _Config) -> dict[str, Any]:
    return {}


def _first(values: _Config, *keys: str) -> Any:
    return next((values[key] for key in keys if values.get(key) is not None), None)


def _plain(values: _Config) -> dict[str, Any]:
    found = {key: _first(values, *names) for key, names in _KEYS.items()}
    plain = {key: value for key, value in found.items() if isinstance(value, (bool, int, float, str))}
    return {key: _typed(key, value) for key, value in plain.items()}


def _typed(key: str, value: MetadataValue) -> MetadataValue:
    return float(value) if key.endswith(_NUMBERS) and isinstance(value, (int, float)) else value


def _head_dim(values: _Config) -> int:
    n_embd, n_heads = _first(values, *_KEYS["embedding_length"]), _first(values, *_KEYS["attention.head_count"])
    own = _first(values, *_KEYS["attention.key_length"])
    return int(own or n_embd // max(n_heads or 1, 1))


def _rope_parameters(values: _Config) -> dict[str, Any]:
    parameters = {**(values.get("rope_scaling") or {}), **(values.get("rope_parameters") or {})}
    return {**parameters, **parameters.get("full_attention", {})}


def _rope(values: _Config) -> dict[str, Any]:
    parameters = _rope_parameters(values)
    base = _first({**parameters, **values}, "rope_theta", "rotary_emb_base", "global_rope_theta")
    part = _first({**parameters, **values}, "partial_rotary_factor", "rotary_pct")
    found: dict[str, Any] = {"rope.freq_base": None if base is None else float(base)}
    if part is not None and part != 1:
        found["rope.dimension_count"] = int(_head_dim(values) * part)
    if parameters.get("rope_type", parameters.get("type")) == "yarn":
        found |= {
            "rope.scaling.type": "yarn",
            "rope.scaling.factor": float(parameters["factor"]),
            "rope.scaling.original_context_length": int(parameters["original_max_position_embeddings"]),
        }
    return found


def _experts(values: _Config) -> dict[str, Any]:
    gate = _first(values, "scoring_func", "score_function", "score_func")
    if (_first(values, *_KEYS["expert_count"]) or 0) > 1:
        return {"expert_gating_func": _GATES.get(gate)}
    return {key: None for key in (*_KEYS, "expert_gating_func") if key.startswith("expert_")}


def _latent(values: _Config) -> dict[str, Any]:
    rank, n_rot = int(values["kv_lora_rank"]), int(values["qk_rope_head_dim"])
    return {
        "attention.head_count_kv": 1,
        "attention.key_length": rank + n_rot,
        "attention.value_length": rank,
        "attention.key_length_mla": int(values["qk_nope_head_dim"]) + n_rot,
        "attention.value_length_mla": int(values["v_head_dim"]),
        "attention.q_lora_rank": int(values.get("q_lora_rank") or 0),
        "rope.dimension_count": n_rot,
    }


def _wanted(values: _Config, architecture: str) -> Iterator[str]:
    if not values.get("tie_word_embeddings", architecture in _TIED):
        yield "output.weight"
    has_bias = next((values[key] for key in _BIASES if key in values), architecture in _BIASED)
    if has_bias:
        yield from ("attn_q.bias", "attn_k.bias", "attn_v.bias")
    if architecture == "bert":
        yield from ("attn_output.bias", "ffn_up.bias", "ffn_down.bias", "token_types.weight")
    if architecture == "nomic-bert":
        yield "token_types.weight"
    kind = _rope_parameters(values).get("rope_type", _rope_parameters(values).get("type"))
    if kind == "llama3":
        yield "rope_freqs.weight"
    if kind in ("longrope", "su"):
        yield from ("rope_factors_long.weight", "rope_factors_short.weight")
    if values.get("use_qk_norm") or values.get("qk_layernorm"):
        yield from ("attn_q_norm.weight", "attn_k_norm.weight")
    if values.get("use_expert_bias") or values.get("topk_method") == "noaux_tc":
        yield "exp_probs_b.bias"


def _mamba(values: _Config) -> dict[str, Any]:
    n_embd = _first(values, "hidden_size", "d_model")
    return {
        "feed_forward_length": 0,
        "attention.head_count": 0,
        "attention.layer_norm_rms_epsilon": float(_first(values, "layer_norm_epsilon", "rms_norm_eps") or 1e-5),
        "attention.layer_norm_epsilon": None,
        "context_length": 1 << 20,
        "ssm.conv_kernel": _first(values, "conv_kernel", "d_conv") or 4,
        "ssm.inner_size": _first(values, "intermediate_size", "d_inner") or 2 * n_embd,
        "ssm.state_size": _first(values, "state_size", "d_state") or 16,
        "ssm.time_step_rank": _first(values, "time_step_rank", "dt_rank") or -(-n_embd // 16),
        "ssm.dt_b_c_rms": values.get("model_type") == "falcon_mamba",
    }


def _mamba2(values: _Config) -> dict[str, Any]:
    n_embd = _first(values, "hidden_size", "d_model")
    head_dim = _first(values, "mamba_d_head", "head_dim", "mamba_head_dim") or 64
    n_inner = _first(values, "mamba_d_ssm", "d_inner") or (values.get("expand") or 2) * n_embd
    return {
        **_mamba({**values, "intermediate_size": n_inner, "dt_rank": n_inner // head_dim, "time_step_rank": None}),
        "attention.head_count_kv": None,
        "attention.key_length": None,
        "attention.value_length": None,
        "ssm.dt_b_c_rms": None,
        "ssm.state_size": _first(values, "state_size", "mamba_d_state", "ssm_state_size") or 128,
        "ssm.conv_kernel": _first(values, "conv_kernel", "mamba_d_conv") or 4,
        "ssm.group_count": _first(values, "n_groups", "mamba_n_groups") or 1,
    }


def _own_of(values: _Config, *keys: str) -> dict[str, Any]:
    """Return what the plain keys give, for those that a state-space part has replaced."""
    plain = _plain(values)
    return {key: plain.get(key) for key in keys}


_OF_ATTENTION = ("attention.head_count", "attention.head_count_kv", "attention.key_length", "attention.value_length")


def _falcon_h1(values: _Config) -> dict[str, Any]:
    return {
        **_mamba2(values),
        **_own_of(values, *_OF_ATTENTION, "feed_forward_length", "context_length", "attention.layer_norm_rms_epsilon"),
        "ssm.time_step_rank": values["mamba_n_heads"],
    }


def _nemotron_h(values: _Config) -> dict[str, Any]:
    pattern, own = values["hybrid_override_pattern"], _plain(values)
    n_inner = values["mamba_num_heads"] * values["mamba_head_dim"]
    return {
        **_mamba2({**values, "mamba_d_ssm": n_inner, "mamba_d_head": values["mamba_head_dim"]}),
        **_own_of(values, "context_length", "attention.key_length", "attention.value_length"),
        "attention.layer_norm_epsilon": 1e-5,
        "attention.head_count": own["attention.head_count"],
        "attention.head_count_kv": tuple(own["attention.head_count_kv"] if each == "*" else 0 for each in pattern),
        "feed_forward_length": tuple(own["feed_forward_length"] if each == "-" else 0 for each in pattern),
    }


def _granite_hybrid(values: _Config) -> dict[str, Any]:
    own = _plain(values)
    kinds = values.get("layer_types") or ["attention"] * own["block_count"]
    n_inner, n_kv_heads = values.get("mamba_expand", 2) * values["hidden_size"], own["attention.head_count_kv"]
    return {
        **_mamba2({**values, "mamba_d_ssm": n_inner}),
        **_own_of(values, *_OF_ATTENTION, "feed_forward_length", "attention.layer_norm_rms_epsilon", "context_length"),
        "attention.head_count_kv": tuple(n_kv_heads if each == "attention" else 0 for each in kinds),
        "ssm.time_step_rank": values.get("mamba_n_heads", n_inner // 64),
        "rope.scaling.finetuned": "mamba" not in kinds,
    }


def _lfm2(values: _Config) -> dict[str, Any]:
    n_layers, n_kv_heads = values["num_hidden_layers"], values["num_key_value_heads"]
    attention = values.get("full_attn_idxs") or [
        at for at, each in enumerate(values["layer_types"]) if each == "full_attention"
    ]
    width = _first(values, "block_ff_dim", "intermediate_size")
    if values.get("block_auto_adjust_ff_dim", "block_ff_dim" in values):
        multiple = values.get("block_multiple_of", 256)
        width = -(-int(2 * width / 3) // multiple) * multiple
    return {
        "feed_forward_length": width,
        "attention.layer_norm_rms_epsilon": float(values.get("norm_eps", 1e-5)),
        "attention.layer_norm_epsilon": None,
        "attention.head_count_kv": tuple(n_kv_heads if at in attention else 0 for at in range(n_layers)),
        "expert_gating_func": 2 if values.get("num_experts") else None,
    }


def _qwen3next(values: _Config) -> dict[str, Any]:
    return {
        "ssm.conv_kernel": values["linear_conv_kernel_dim"],
        "ssm.state_size": values["linear_key_head_dim"],
        "ssm.group_count": values["linear_num_key_heads"],
        "ssm.time_step_rank": values["linear_num_value_heads"],
        "ssm.inner_size": values["linear_value_head_dim"] * values["linear_num_value_heads"],
        "rope.dimension_count": int(_head_dim(values) * _rope_parameters(values).get("partial_rotary_factor", 0.25)),
    }


def _rwkv7(values: _Config) -> dict[str, Any]:
    return {
        "context_length": 1 << 20,
        "attention.head_count": 0,
        "attention.head_count_kv": None,
        "attention.key_length": None,
        "attention.value_length": None,
        "wkv.head_size": _first(values, "head_size", "head_dim"),
        "attention.decay_lora_rank": _first(values, "lora_rank_decay", "decay_low_rank_dim"),
        "attention.iclr_lora_rank": _first(values, "lora_rank_iclr", "a_low_rank_dim"),
        "attention.value_residual_mix_lora_rank": _first(values, "lora_rank_value_residual_mix", "v_low_rank_dim"),
        "attention.gate_lora_rank": _first(values, "lora_rank_gate", "gate_low_rank_dim"),
    }


def _minicpm3(values: _Config) -> dict[str, Any]:
    return {
        "attention.key_length": values["qk_nope_head_dim"] + values["qk_rope_head_dim"],
        "attention.value_length": values["v_head_dim"],
        "rope.dimension_count": values["qk_rope_head_dim"],
    }


def _ernie_experts(values: _Config) -> dict[str, Any]:
    return {"expert_shared_feed_forward_length": values["moe_intermediate_size"] * values["moe_num_shared_experts"]}


def _dbrx(values: _Config) -> dict[str, Any]:
    attention, experts = values["attn_config"], values["ffn_config"]
    return {
        "feed_forward_length": experts["ffn_hidden_size"],
        "attention.head_count_kv": attention["kv_n_heads"],
        "attention.clamp_kqv": float(attention["clip_qkv"]),
        "attention.layer_norm_epsilon": 1e-5,
        "rope.freq_base": float(attention["rope_theta"]),
        "expert_count": experts["moe_num_experts"],
        "expert_used_count": experts["moe_top_k"],
    }


def _gemma3n(values: _Config) -> dict[str, Any]:
    width = values["intermediate_size"]
    return {"feed_forward_length": width[0] if isinstance(width, list) else width}


def _apertus(values: _Config) -> dict[str, Any]:
    return {f"xielu.{key}": (1e-7 if key == "eps" else 1.0) for key in ("alpha_n", "alpha_p", "beta", "eps")}


def _gemma_window(values: _Config) -> dict[str, Any]:
    return {"attention.key_length": values.get("head_dim", 256), "attention.value_length": values.get("head_dim", 256)}


#: What architectures have for themselves, beyond keys of one name each.
_SPECIFIC: Mapping[str, Callable[[_Config], dict[str, Any]]] = {
    "mamba": _mamba,
    "mamba2": _mamba2,
    "falcon-h1": _falcon_h1,
    "nemotron_h": _nemotron_h,
    "granitehybrid": _granite_hybrid,
    "lfm2": _lfm2,
    "lfm2moe": _lfm2,
    "qwen3next": _qwen3next,
    "rwkv7": _rwkv7,
    "minicpm3": _minicpm3,
    "ernie4_5-moe": _ernie_experts,
    "dbrx": _dbrx,
    "gemma3": _gemma_window,
    "gemma3n": _gemma3n,
    "gemma-embedding": lambda values: {**_gemma_window(values), "attention.causal": False, "pooling_type": 1},
    "apertus": _apertus,
    "gpt-oss": lambda values: {"expert_feed_forward_length": values["intermediate_size"]},
    "llama4": lambda values: {"expert_feed_forward_length": values["intermediate_size"]},
    "phimoe": lambda values: {"expert_feed_forward_length": values["intermediate_size"]},
    "bert": lambda values: {"attention.causal": False, "pooling_type": 2},
    "nomic-bert": lambda values: {"attention.causal": False, "pooling_type": 1},
    "modern-bert": lambda values: {"attention.causal": False, "pooling_type": 2},
}
