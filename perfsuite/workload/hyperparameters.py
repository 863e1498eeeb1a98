"""The metadata of a GGUF from which llama.cpp knows an architecture's dimensions."""

from __future__ import annotations

from collections.abc import Mapping

from perfsuite.workload.architecture import Architecture


def hyperparameters(architecture: Architecture) -> Mapping[str, bool | int | float]:
    """Return the architecture's metadata without the prefix ``<gguf_architecture>.``.

    *Source*: the keys that ``load_arch_hparams`` in ``src/models/`` of llama.cpp reads, under the names in
    ``src/llama-arch.cpp``.
    """
    values = {**_common(architecture), **_experts(architecture), **_latent_attention(architecture)}
    return {key: value for key, value in values.items() if value is not None}


_Values = dict[str, bool | int | float | None]


def _common(architecture: Architecture) -> _Values:
    norm = "layer_norm_epsilon" if architecture.family.layer_norm_with_bias else "layer_norm_rms_epsilon"
    parallel = architecture.parallel_residual if architecture.family.parallel_option else None
    return {
        "vocab_size": architecture.n_vocab,
        "context_length": architecture.n_ctx_train,
        "embedding_length": architecture.n_embd,
        "block_count": architecture.n_layers,
        "feed_forward_length": architecture.n_ff,
        "use_parallel_residual": parallel,
        "attention.head_count": architecture.n_heads,
        "attention.head_count_kv": architecture.n_kv_heads,
        "attention.key_length": architecture.head_dim,
        "attention.value_length": architecture.v_head_dim,
        f"attention.{norm}": architecture.norm_eps,
        "attention.sliding_window": architecture.sliding_window,
        "attn_logit_softcapping": architecture.attn_logit_softcap,
        "final_logit_softcapping": architecture.final_logit_softcap,
        "rope.dimension_count": architecture.n_rot,
        "rope.freq_base": architecture.rope_freq_base,
        "rope.scaling.original_context_length": architecture.n_ctx_orig,
    }


def _experts(architecture: Architecture) -> _Values:
    moe = architecture.moe
    if moe is None:
        return {}
    values: _Values = {
        "expert_count": moe.n_experts,
        "expert_used_count": moe.n_experts_used,
        "expert_feed_forward_length": moe.n_ff_expert,
    }
    if architecture.family.gated_shared_expert:
        return {**values, "expert_shared_feed_forward_length": moe.n_ff_shared}
    return {
        **values,
        "expert_shared_count": moe.n_ff_shared // moe.n_ff_expert,
        "leading_dense_block_count": moe.n_dense_layers,
        "expert_weights_scale": moe.weights_scale,
        "expert_weights_norm": moe.normalize_weights,
    }


def _latent_attention(architecture: Architecture) -> _Values:
    mla = architecture.mla
    if mla is None:
        return {}
    values: _Values = {"attention.kv_lora_rank": mla.kv_lora_rank}
    if architecture.gguf_architecture == "deepseek2":
        # The loader demands the key except at a few depths, and reads 0 as 'not compressed'.
        values["attention.q_lora_rank"] = mla.q_lora_rank or 0
    if not mla.absorbed:
        return values
    return {
        **values,
        "attention.key_length": mla.kv_lora_rank + mla.qk_rope_head_dim,
        "attention.value_length": mla.kv_lora_rank,
        "attention.key_length_mla": architecture.head_dim,
        "attention.value_length_mla": architecture.v_head_dim,
    }
