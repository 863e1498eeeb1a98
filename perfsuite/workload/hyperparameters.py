"""The metadata of a GGUF from which llama.cpp knows an architecture's dimensions, written and read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from perfsuite.errors import PerfsuiteError
from perfsuite.records.codec import LARGEST
from perfsuite.workload.architecture import Architecture, LatentAttention, MixtureOfExperts
from perfsuite.workload.families import Family, family_of


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What a model says of an architecture of a known family: hyperparameters, and which tensors there are."""

    name: str
    gguf_architecture: str
    #: Without the prefix of their keys; an array is None.
    values: Mapping[str, Any]
    #: None where the metadata say it.
    n_vocab: int | None
    #: Kinds of tensors, without the prefix of a layer.
    tensors: Collection[str]
    #: Makes the error of a key: its value, None where it is missing, and what is expected of it.
    refusal: Callable[[str, object, str], PerfsuiteError]

    def architecture(self) -> Architecture:
        """Return the architecture; raises an error of `refusal`, or ArchitectureError where it contradicts itself."""
        family = family_of(self.gguf_architecture)
        n_embd, n_heads = self._integer("embedding_length"), self._integer("attention.head_count")
        head_dim = self._integer("attention.key_length", n_embd // max(n_heads, 1))
        original = "rope.scaling.original_context_length"
        fields: dict[str, Any] = {
            "name": self.name,
            "gguf_architecture": self.gguf_architecture,
            "n_layers": self._integer("block_count"),
            "n_embd": n_embd,
            "n_heads": n_heads,
            "n_kv_heads": self._integer("attention.head_count_kv", n_heads),
            "head_dim": head_dim,
            "v_head_dim": self._integer("attention.value_length", head_dim),
            "n_ff": self._integer("feed_forward_length"),
            "n_vocab": self._integer("vocab_size") if self.n_vocab is None else self.n_vocab,
            "n_ctx_train": self._integer("context_length"),
            "tied_embeddings": "output.weight" not in self.tensors,
            "qkv_bias": "attn_q.bias" in self.tensors or "attn_qkv.bias" in self.tensors,
            "qk_norm": family.qk_norm,
            "fused_qkv": "attn_qkv.weight" in self.tensors,
            "n_rot": self._integer("rope.dimension_count", head_dim),
            "rope_freq_base": self._number("rope.freq_base", 10000.0),
            "rope_freq_factors": family.rope_factors[0] in self.tensors,
            "n_ctx_orig": self._integer(original) if original in self.values else None,
            **self._family_fields(family),
            **self._latent_attention(family, absorbed="attn_k_b.weight" in self.tensors),
            "moe": self._experts(family) if family.experts else None,
        }
        return Architecture(**fields)

    def _family_fields(self, family: Family) -> dict[str, Any]:
        norm = "layer_norm_epsilon" if family.layer_norm_with_bias else "layer_norm_rms_epsilon"
        fields: dict[str, Any] = {"norm_eps": self._number(f"attention.{norm}")}
        if family.parallel_option:
            fields["parallel_residual"] = bool(self._value("use_parallel_residual", True))
        if family.window_caches:
            fields["sliding_window"] = self._integer("attention.sliding_window", 4096)
        if family.soft_caps:
            fields["attn_logit_softcap"] = self._number("attn_logit_softcapping", 50.0)
            fields["final_logit_softcap"] = self._number("final_logit_softcapping", 30.0)
        return fields

    def _experts(self, family: Family) -> MixtureOfExperts:
        n_experts, n_ff_expert = self._integer("expert_count"), self._integer("expert_feed_forward_length")
        if family.gated_shared_expert:
            n_ff_shared = self._integer("expert_shared_feed_forward_length")
        else:
            n_ff_shared = n_ff_expert * self._integer("expert_shared_count")
        return MixtureOfExperts(
            n_experts=n_experts,
            n_experts_used=self._integer("expert_used_count"),
            n_ff_expert=n_ff_expert,
            n_ff_shared=n_ff_shared,
            n_dense_layers=self._integer("leading_dense_block_count", 0),
            normalize_weights=bool(self._value("expert_weights_norm", False)),
            weights_scale=self._number("expert_weights_scale", 1.0),
        )

    def _latent_attention(self, family: Family, *, absorbed: bool) -> dict[str, Any]:
        if not family.latent_attention:
            return {}
        suffix = "_mla" if absorbed else ""
        head_dim, v_head_dim = (self._integer(f"attention.{part}_length{suffix}") for part in ("key", "value"))
        n_rot = self._integer("rope.dimension_count")
        latent = LatentAttention(
            q_lora_rank=self._integer("attention.q_lora_rank", 0) or None,
            kv_lora_rank=self._integer("attention.kv_lora_rank"),
            qk_nope_head_dim=head_dim - n_rot,
            qk_rope_head_dim=n_rot,
            v_head_dim=v_head_dim,
            absorbed=absorbed,
        )
        return {"head_dim": head_dim, "v_head_dim": v_head_dim, "mla": latent}

    def _integer(self, key: str, default: int | None = None) -> int:
        value = self._value(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or abs(value) > LARGEST:
            raise self.refusal(key, value, "an integer")
        return value

    def _number(self, key: str, default: float | None = None) -> float:
        value = self._value(key, default)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) <= LARGEST:
            raise self.refusal(key, value, "a number")
        return float(f"{value:.7g}")  # a file has single precision: 1e-05 and not 9.999999747e-06

    def _value(self, key: str, default: object) -> object:
        if key in self.values:
            return "an array" if self.values[key] is None else self.values[key]
        if default is None:
            raise self.refusal(key, None, "a value")
        return default
