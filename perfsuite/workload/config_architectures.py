"""What the GGUF metadata of single architectures has beyond keys of one name each.

*Source*: ``conversion/`` of llama.cpp, as shipped with llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from perfsuite.workload.config_keys import KEYS, Values, first_of, head_dim, one_of, own_of, plain_metadata
from perfsuite.workload.model_config import rope_parameters


def _mamba(values: Values) -> dict[str, Any]:
    n_embd = first_of(values, "hidden_size", "d_model")
    return {
        "feed_forward_length": 0,
        "attention.head_count": 0,
        "attention.layer_norm_rms_epsilon": float(first_of(values, "layer_norm_epsilon", "rms_norm_eps") or 1e-5),
        "attention.layer_norm_epsilon": None,
        "context_length": 1 << 20,
        "ssm.conv_kernel": first_of(values, "conv_kernel", "d_conv") or 4,
        "ssm.inner_size": first_of(values, "intermediate_size", "d_inner") or 2 * n_embd,
        "ssm.state_size": first_of(values, "state_size", "d_state") or 16,
        "ssm.time_step_rank": first_of(values, "time_step_rank", "dt_rank") or -(-n_embd // 16),
        "ssm.dt_b_c_rms": values.get("model_type") == "falcon_mamba",
    }


def _mamba2(values: Values) -> dict[str, Any]:
    n_embd = first_of(values, "hidden_size", "d_model")
    head_dim = first_of(values, "mamba_d_head", "head_dim", "mamba_head_dim") or 64
    n_inner = first_of(values, "mamba_d_ssm", "d_inner") or (values.get("expand") or 2) * n_embd
    return {
        **_mamba({**values, "intermediate_size": n_inner, "dt_rank": n_inner // head_dim, "time_step_rank": None}),
        "attention.head_count_kv": None,
        "attention.key_length": None,
        "attention.value_length": None,
        "ssm.dt_b_c_rms": None,
        "ssm.state_size": first_of(values, "state_size", "mamba_d_state", "ssm_state_size") or 128,
        "ssm.conv_kernel": first_of(values, "conv_kernel", "mamba_d_conv") or 4,
        "ssm.group_count": first_of(values, "n_groups", "mamba_n_groups") or 1,
    }


_OF_ATTENTION = ("attention.head_count", "attention.head_count_kv", "attention.key_length", "attention.value_length")


def _falcon_h1(values: Values) -> dict[str, Any]:
    return {
        **_mamba2(values),
        **own_of(values, *_OF_ATTENTION, "feed_forward_length", "context_length", "attention.layer_norm_rms_epsilon"),
        "ssm.time_step_rank": values["mamba_n_heads"],
    }


#: Kinds of layers, by their letter and by their word.
_KINDS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


def _nemotron_h(values: Values) -> dict[str, Any]:
    pattern, own = first_of(values, "hybrid_override_pattern", "layers_block_type"), plain_metadata(values)
    if pattern is None:
        raise KeyError("hybrid_override_pattern")
    kinds = [_KINDS.get(each, each) for each in pattern]
    if unknown := set(kinds) - set(_KINDS.values()):
        raise ValueError(f"layers of kind {min(unknown)!r}, expected {', '.join(_KINDS.values())}")
    n_inner = values["mamba_num_heads"] * values["mamba_head_dim"]
    width = values["moe_intermediate_size"] if "moe" in kinds else own["feed_forward_length"]
    return {
        **_mamba2({**values, "mamba_d_ssm": n_inner, "mamba_d_head": values["mamba_head_dim"]}),
        **own_of(values, "context_length", "attention.key_length", "attention.value_length"),
        "attention.layer_norm_epsilon": 1e-5,
        "attention.head_count": own["attention.head_count"],
        "attention.head_count_kv": tuple(
            own["attention.head_count_kv"] if each == "attention" else 0 for each in kinds
        ),
        "feed_forward_length": tuple(width if each in ("mlp", "moe") else 0 for each in kinds),
        "moe_latent_size": values.get("moe_latent_size"),
    }


def _granite_hybrid(values: Values) -> dict[str, Any]:
    own = plain_metadata(values)
    kinds = values.get("layer_types") or ["attention"] * own["block_count"]
    if (attention := values.get("attn_layer_indices")) is not None:
        kinds = ["attention" if at in attention else "mamba" for at in range(own["block_count"])]
    n_inner, n_kv_heads = values.get("mamba_expand", 2) * values["hidden_size"], own["attention.head_count_kv"]
    return {
        **_mamba2({**values, "mamba_d_ssm": n_inner}),
        **own_of(values, *_OF_ATTENTION, "feed_forward_length", "attention.layer_norm_rms_epsilon", "context_length"),
        "attention.head_count_kv": tuple(n_kv_heads if each == "attention" else 0 for each in kinds),
        "ssm.time_step_rank": values.get("mamba_n_heads", n_inner // 64),
        "rope.scaling.finetuned": "mamba" not in kinds,
    }


def _lfm2(values: Values) -> dict[str, Any]:
    n_layers, n_kv_heads = values["num_hidden_layers"], values["num_key_value_heads"]
    attention = values.get("full_attn_idxs") or [
        at for at, each in enumerate(values["layer_types"]) if each == "full_attention"
    ]
    width = first_of(values, "block_ff_dim", "intermediate_size")
    if values.get("block_auto_adjust_ff_dim", "block_ff_dim" in values):
        multiple, factor = values.get("block_multiple_of", 256), values.get("block_ffn_dim_multiplier") or 1.0
        width = -(-int(factor * int(2 * width / 3)) // multiple) * multiple
    return {
        "feed_forward_length": width,
        "attention.layer_norm_rms_epsilon": float(values.get("norm_eps", 1e-5)),
        "attention.layer_norm_epsilon": None,
        "attention.head_count_kv": tuple(n_kv_heads if at in attention else 0 for at in range(n_layers)),
        "expert_gating_func": 2 if values.get("num_experts") else None,
    }


def _qwen3next(values: Values) -> dict[str, Any]:
    return {
        "ssm.conv_kernel": values["linear_conv_kernel_dim"],
        "ssm.state_size": values["linear_key_head_dim"],
        "ssm.group_count": values["linear_num_key_heads"],
        "ssm.time_step_rank": values["linear_num_value_heads"],
        "ssm.inner_size": values["linear_value_head_dim"] * values["linear_num_value_heads"],
    }


def _rwkv7(values: Values) -> dict[str, Any]:
    return {
        "context_length": 1 << 20,
        "attention.head_count": 0,
        "attention.head_count_kv": None,
        "attention.key_length": None,
        "attention.value_length": None,
        "wkv.head_size": first_of(values, "head_size", "head_dim"),
        "attention.decay_lora_rank": first_of(values, "lora_rank_decay", "decay_low_rank_dim"),
        "attention.iclr_lora_rank": first_of(values, "lora_rank_iclr", "a_low_rank_dim"),
        "attention.value_residual_mix_lora_rank": first_of(values, "lora_rank_value_residual_mix", "v_low_rank_dim"),
        "attention.gate_lora_rank": first_of(values, "lora_rank_gate", "gate_low_rank_dim"),
    }


def _minicpm3(values: Values) -> dict[str, Any]:
    return {
        "attention.key_length": values["qk_nope_head_dim"] + values["qk_rope_head_dim"],
        "attention.value_length": values["v_head_dim"],
        "rope.dimension_count": values["qk_rope_head_dim"],
    }


def _ernie_experts(values: Values) -> dict[str, Any]:
    return {"expert_shared_feed_forward_length": values["moe_intermediate_size"] * values["moe_num_shared_experts"]}


def _dbrx(values: Values) -> dict[str, Any]:
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


def _gemma3n(values: Values) -> dict[str, Any]:
    width = plain_metadata(values)["feed_forward_length"]
    if isinstance(width, tuple):
        raise ValueError("intermediate_size differs between layers, which llama.cpp does not run of it")
    return {"feed_forward_length": width}


def _chatglm(values: Values) -> dict[str, Any]:
    base = rope_parameters(values)["rope_theta"] or 10000.0 * values.get("rope_ratio", 1)
    return {"rope.freq_base": float(base), "attention.layer_norm_epsilon": None}


def _openelm(values: Values) -> dict[str, Any]:
    return {
        "feed_forward_length": one_of([_openelm_width(values, each) for each in values["ffn_multipliers"]]),
        "attention.head_count": one_of(values["num_query_heads"]),
        "attention.head_count_kv": one_of(values["num_kv_heads"]),
        "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.dimension_count": values["head_dim"],
    }


def _openelm_width(values: Values, multiplier: float) -> int:
    """Round a width to a multiple of the divisor, by a tenth down at most."""
    wanted, divisor = multiplier * values["model_dim"], values["ffn_dim_divisor"]
    width = max(divisor, int(wanted + divisor / 2) // divisor * divisor)
    return int(width + divisor if width < 0.9 * wanted else width)


def _falcon(values: Values) -> dict[str, Any]:
    n_heads = first_of(values, *KEYS["attention.head_count"])
    is_grouped = values.get("new_decoder_architecture", False)
    n_kv_heads = (first_of(values, "num_kv_heads", "n_head_kv") or n_heads) if is_grouped else n_heads
    if values.get("multi_query", True) and not is_grouped:
        n_kv_heads = 1
    return {"context_length": values.get("max_position_embeddings", 2048), "attention.head_count_kv": n_kv_heads}


def _starcoder(values: Values) -> dict[str, Any]:
    return {"attention.head_count_kv": 1 if values.get("multi_query", True) else None}


def _mpt(values: Values) -> dict[str, Any]:
    attention = values.get("attn_config") or {}
    alibi = float(attention.get("alibi_bias_max", 8)) if attention.get("alibi") else 0.0
    return {
        "attention.head_count_kv": attention.get("kv_n_heads"),
        "attention.layer_norm_epsilon": 1e-5,
        "attention.clamp_kqv": None if attention.get("clip_qkv") is None else float(attention["clip_qkv"]),
        "attention.max_alibi_bias": alibi,
    }


def _exaone4(values: Values) -> dict[str, Any]:
    pattern = values.get("sliding_window_pattern")
    if not values.get("sliding_window") or not pattern or "layer_types" in values:
        return {}
    if isinstance(pattern, int):
        pattern = "L" * (pattern - 1) + "G"
    kinds = (pattern[at % len(pattern)] == "L" for at in range(values["num_hidden_layers"]))
    return {"attention.sliding_window_pattern": tuple(kinds)}


def _minicpm(values: Values) -> dict[str, Any]:
    """Write the scales, without which the engine has those of the first models."""
    depth, width = values.get("scale_depth"), values.get("dim_model_base")
    return {
        "residual_scale": depth and depth / values["num_hidden_layers"] ** 0.5,
        "logit_scale": width and values["hidden_size"] / width,
    }


def _qwen3vl(values: Values) -> dict[str, Any]:
    layers = (values.get("vision_config") or {}).get("deepstack_visual_indexes") or ()
    return {"n_deepstack_layers": len(layers)}


def _apertus(values: Values) -> dict[str, Any]:
    return {f"xielu.{key}": (1e-7 if key == "eps" else 1.0) for key in ("alpha_n", "alpha_p", "beta", "eps")}


def _gemma_window(values: Values) -> dict[str, Any]:
    return {"attention.key_length": values.get("head_dim", 256), "attention.value_length": values.get("head_dim", 256)}


#: What architectures have for themselves, beyond keys of one name each.
SPECIFIC: Mapping[str, Callable[[Values], dict[str, Any]]] = {
    "mamba": _mamba,
    "mamba2": _mamba2,
    "falcon-h1": _falcon_h1,
    "nemotron_h": _nemotron_h,
    "granitehybrid": _granite_hybrid,
    "lfm2": _lfm2,
    "lfm2moe": _lfm2,
    "qwen3next": _qwen3next,
    "qwen35": _qwen3next,
    "qwen35moe": _qwen3next,
    "qwen3vl": _qwen3vl,
    "qwen3vlmoe": _qwen3vl,
    "nemotron_h_moe": _nemotron_h,
    "chatglm": _chatglm,
    "openelm": _openelm,
    "falcon": _falcon,
    "starcoder": _starcoder,
    "mpt": _mpt,
    "exaone4": _exaone4,
    "minicpm": _minicpm,
    "rwkv7": _rwkv7,
    "minicpm3": _minicpm3,
    "plm": _minicpm3,
    "ernie4_5-moe": _ernie_experts,
    "dbrx": _dbrx,
    "gemma3": _gemma_window,
    "gemma3n": _gemma3n,
    "gemma-embedding": lambda values: {**_gemma_window(values), "attention.causal": False, "pooling_type": 1},
    "apertus": _apertus,
    "olmo": lambda values: {"attention.layer_norm_epsilon": 1e-5, "attention.clamp_kqv": values.get("clip_qkv")},
    "qwen": lambda values: {"attention.layer_norm_rms_epsilon": float(values["layer_norm_epsilon"])},
    "glm4moe": lambda values: {"expert_gating_func": 2},
    "bailingmoe": lambda values: {"rope.dimension_count": head_dim(values), "expert_weights_scale": 1.0},
    # Of this one llama.cpp reads none of them.
    "qwen2moe": lambda values: dict.fromkeys(
        ("expert_weights_norm", "expert_weights_scale", "leading_dense_block_count")
    ),
    "gpt-oss": lambda values: {"expert_feed_forward_length": values["intermediate_size"]},
    "llama4": lambda values: {"expert_feed_forward_length": values["intermediate_size"]},
    "phimoe": lambda values: {"expert_feed_forward_length": values["intermediate_size"]},
    "bert": lambda values: {"attention.causal": False, "pooling_type": 2},
    "nomic-bert": lambda values: {"attention.causal": False, "pooling_type": 1},
    "modern-bert": lambda values: {"attention.causal": False, "pooling_type": 2},
}
