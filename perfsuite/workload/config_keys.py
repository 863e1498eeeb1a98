"""The keys of configs, and the GGUF metadata that each of them is.

*Source*: the keys that ``conversion/`` of llama.cpp, as shipped with llama-cpp-python 0.3.36, reads and writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfsuite.workload.model_shape import MetadataValue

Values = Mapping[str, Any]

#: Keys of the metadata, and those of a config that one of is there under.
KEYS: Mapping[str, tuple[str, ...]] = {
    "vocab_size": ("vocab_size_per_layer_input", "padded_vocab_size", "vocab_size"),
    "context_length": (
        *("max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length", "seq_length", "max_seq_len"),
        *("max_context_length", "model_max_length"),
    ),
    "embedding_length": ("hidden_size", "n_embd", "n_embed", "d_model", "dim", "model_dim"),
    "block_count": ("num_hidden_layers", "n_layers", "n_layer", "num_layers", "num_transformer_layers"),
    "feed_forward_length": (
        *("intermediate_size_mlp", "mlp_hidden_size", "intermediate_size", "ffn_hidden_size", "n_inner", "d_ff"),
        "hidden_dim",
    ),
    "attention.head_count": ("num_attention_heads", "n_head", "n_heads", "num_heads", "num_query_heads"),
    "attention.head_count_kv": (
        *("multi_query_group_num", "num_key_value_heads", "n_kv_heads", "num_kv_heads", "n_head_kv"),
        *("num_attention_groups", "num_query_groups"),
    ),
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
    "expert_used_count": (
        *("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_k", "moe_topk", "moe_top_k"),
        "top_k_experts",
    ),
    "expert_feed_forward_length": (
        *("moe_intermediate_size", "expert_ffn_hidden_size", "moe_ffn_hidden_size", "expert_intermediate_size"),
    ),
    "expert_shared_feed_forward_length": (
        *("shared_expert_intermediate_size", "shared_intermediate_size", "moe_shared_expert_intermediate_size"),
    ),
    "expert_shared_count": ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert"),
    "expert_group_count": ("n_group",),
    "expert_group_used_count": ("topk_group",),
    "expert_weights_scale": ("routed_scaling_factor", "route_scale", "router_scaling_factor"),
    "expert_weights_norm": ("norm_topk_prob", "route_norm"),
    "leading_dense_block_count": ("first_k_dense_replace", "moe_layer_start_index", "num_dense_layers"),
    "interleave_moe_layer_step": ("interleave_moe_layer_step", "moe_layer_interval"),
    "moe_every_n_layers": ("moe_every_n_layers",),
    "full_attention_interval": ("full_attention_interval",),
    "hidden_activation": ("hidden_activation",),
    "shortconv.l_cache": ("conv_L_cache",),
    "rope.dimension_count": ("rotary_dim", "attention_dim"),
    "rope.freq_base_swa": ("rope_local_base_freq", "local_rope_theta", "swa_rope_theta"),
    "tokenizer.ggml.token_type_count": ("type_vocab_size",),
}

#: Keys that hold floating-point numbers whatever a config has.
_NUMBERS = ("epsilon", "scale", "softcapping", "freq_base", "freq_base_swa", "clamp_kqv")


def first_of(values: Values, *keys: str) -> Any:
    """Return what a config has under the first of some keys that it has; None under none."""
    return next((values[key] for key in keys if values.get(key) is not None), None)


def plain_metadata(values: Values) -> dict[str, Any]:
    """Return the metadata that a config has under one key of its own."""
    found = {key: one_of(first_of(values, *names)) for key, names in KEYS.items()}
    plain = {key: value for key, value in found.items() if isinstance(value, (bool, int, float, str, tuple))}
    return {key: _typed(key, value) for key, value in plain.items()}


def one_of(value: Any) -> Any:
    """Return a list of values of all layers as a tuple, or as the one value that all have."""
    if not isinstance(value, list) or not value or not all(isinstance(each, int) for each in value):
        return value
    return value[0] if len(set(value)) == 1 else tuple(value)


def _typed(key: str, value: MetadataValue) -> MetadataValue:
    return float(value) if key.endswith(_NUMBERS) and isinstance(value, (int, float)) else value


def head_dim(values: Values) -> int:
    """Return the size of a head, given or as it follows from the width."""
    n_embd, n_heads = first_of(values, *KEYS["embedding_length"]), first_of(values, *KEYS["attention.head_count"])
    own = first_of(values, *KEYS["attention.key_length"])
    if own is None and n_embd is None:
        raise KeyError("hidden_size")
    return int(own or n_embd // max(n_heads or 1, 1))


def own_of(values: Values, *keys: str) -> dict[str, Any]:
    """Return what the plain keys give, for those that a state-space part has replaced."""
    plain = plain_metadata(values)
    return {key: plain.get(key) for key in keys}
