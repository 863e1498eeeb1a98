"""What each architecture that llama.cpp knows by name implies for every model of its kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from perfsuite.errors import ArchitectureError


class FeedForward(Enum):
    """How a dense feed-forward block lays out its weights."""

    #: ``ffn_gate`` and ``ffn_up`` are two matrices.
    GATED = "gated"
    #: One ``ffn_up`` of twice the width holds gate and up.
    FUSED_GATED = "fused-gated"
    #: No gate: up, activation, down.
    PLAIN = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The traits that all models of one GGUF architecture share.

    *Source*: ``src/models/<gguf_architecture>.cpp`` of llama.cpp, as shipped with llama-cpp-python 0.3.36.
    """

    #: The value of ``general.architecture``.
    gguf_architecture: str
    #: ``feed_forward`` and ``activation`` describe the dense block, and each expert alike.
    feed_forward: FeedForward = FeedForward.GATED
    activation: str = "silu"
    #: Whether norms subtract the mean (LayerNorm) and carry a bias, as do all dense matrices.
    layer_norm_with_bias: bool = False
    #: Whether attention and feed-forward are each followed by a norm of their own.
    post_norms: bool = False
    #: Whether embeddings, and queries, are scaled by an operator of their own.
    scales_embeddings: bool = False
    scales_queries: bool = False
    #: Whether scores and logits are capped, each by a scale, a tanh and a scale.
    soft_caps: bool = False
    #: Whether the engine keeps a second cache, for the even layers, which have a sliding window.
    window_caches: bool = False
    #: What the engine calls the sum of the residual and attention.
    attention_sum: str = "ffn_inp"
    #: Whether a file says if attention and feed-forward read the same input.
    parallel_option: bool = False
    #: Whether a gate of its own scales the expert that every token passes.
    gated_shared_expert: bool = False
    #: Tensors of RoPE's frequency factors: that for long contexts first where there are two.
    rope_factors: tuple[str, ...] = ("rope_freqs.weight",)
    #: Whether queries and keys are normalised per head.
    qk_norm: bool = False
    #: Whether attention goes through a latent vector, and whether most layers route to experts.
    latent_attention: bool = False
    experts: bool = False
    #: What the loader demands: ``True`` no ``output.weight``, ``False`` one, ``None`` either.
    tied_embeddings: bool | None = None
    #: What the loader demands of Q, K and V in one matrix; ``None`` either.
    fused_qkv: bool | None = None
    #: Whether RoPE must cover the whole head.
    full_rotary: bool = True
    #: Whether heads times head size must equal the embedding length.
    square_attention: bool = False
    #: Whether the engine can run its attention fused; PLM's value view fits only the unfused cache, and with flash
    #: attention on or automatic llama.cpp aborts while it builds the graph.
    flash_attention: bool = True


_FAMILIES = (
    Family(gguf_architecture="llama"),
    Family(gguf_architecture="qwen2", square_attention=True),
    Family(gguf_architecture="qwen3", qk_norm=True),
    Family(
        gguf_architecture="gemma2",
        activation="gelu",
        post_norms=True,
        scales_embeddings=True,
        scales_queries=True,
        soft_caps=True,
        window_caches=True,
        attention_sum="sa_out",
        tied_embeddings=True,
    ),
    Family(
        gguf_architecture="gptneox",
        feed_forward=FeedForward.PLAIN,
        activation="gelu",
        layer_norm_with_bias=True,
        parallel_option=True,
        tied_embeddings=False,
        fused_qkv=True,
        full_rotary=False,
        square_attention=True,
    ),
    Family(
        gguf_architecture="phi3",
        feed_forward=FeedForward.FUSED_GATED,
        scales_queries=True,
        attention_sum="attn_out",  # a sum without a name is called by the weight before it
        rope_factors=("rope_factors_long.weight", "rope_factors_short.weight"),
        full_rotary=False,
        square_attention=True,
    ),
    Family(
        gguf_architecture="plm",
        feed_forward=FeedForward.PLAIN,
        activation="relu_squared",
        latent_attention=True,
        tied_embeddings=True,
        fused_qkv=False,
        full_rotary=False,
        flash_attention=False,
    ),
    Family(
        gguf_architecture="qwen2moe",
        experts=True,
        gated_shared_expert=True,
        tied_embeddings=False,
        square_attention=True,
    ),
    Family(gguf_architecture="deepseek2", latent_attention=True, experts=True, fused_qkv=False, full_rotary=False),
)

#: The supported families by the value of ``general.architecture``.
FAMILIES: Mapping[str, Family] = MappingProxyType({family.gguf_architecture: family for family in _FAMILIES})


def family_of(gguf_architecture: str) -> Family:
    """Return the family of a GGUF architecture, or raise ArchitectureError with the supported ones."""
    family = FAMILIES.get(gguf_architecture)
    if family is None:
        raise ArchitectureError(
            f"GGUF architecture {gguf_architecture!r} is not supported; supported are {', '.join(FAMILIES)}"
        )
    return family
