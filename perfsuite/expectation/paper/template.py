"""The paper's generic Llama template: the dimensions and formats that its composition needs of an architecture.

Attention is grouped-query or latent, the feed-forward block gated or plain. Norms beside the two of a layer, biases,
sliding windows and soft caps are not counted. Experts have no place in it.

Where the paper leaves a choice: the output matrix and all matrices of a layer have the variant's weights, the embedding
bf16; everything between operators has the format of the activations, for QuaRot too, whose Hadamard transforms and
quantisation of activations have no stated cost and none here; latent vectors have no norm; adapters are computed in the
dispatch of their operator, in every pass, for the matrices of the layers alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.operators.number_format import NumberFormat, find_format
from perfsuite.expectation.operators.tiling import check_positive
from perfsuite.records.op_cost import OpCost
from perfsuite.workload.architecture import Architecture, LatentAttention
from perfsuite.workload.families import FeedForward
from perfsuite.workload.variant import Variant


class OperatorKey(str, Enum):
    """Kinds of operators; the value is the key of `PassCost.by_operator`."""

    EMBEDDING = "embedding"
    NORM = "norm"
    GEMM = "gemm"
    #: Operations that int4 weights and quantised keys cost before they are multiplied.
    DEQUANTIZE = "dequantize"
    LORA = "lora"
    ROPE = "rope"
    #: The scale of the queries, the residuals and the product of gate and up.
    ELEMENTWISE = "elementwise"
    ACTIVATION = "activation"
    #: Scores and mix, with the operands that they read.
    BMM = "bmm"
    SOFTMAX = "softmax"
    #: What enters the KV cache, and earlier positions read from it.
    KV_CACHE = "kv_cache"


#: Operators in order of use.
Operators: TypeAlias = Iterator[tuple[OperatorKey, OpCost]]


#: Rank of the adapters where none is named: the smaller of the two in LIFE's Table 12.
DEFAULT_LORA_RANK = 16
#: Positions of the RoPE tables, whatever the context. *Source*: LIFE's Llama2-7B, tables of 4096 x 128.
ROPE_POSITIONS = 4096
#: What a template has of its architecture as it is.
_SAME = ("n_layers", "n_embd", "n_heads", "n_kv_heads", "head_dim", "v_head_dim", "n_ff", "n_vocab", "fused_qkv")
#: The latent attention that the variant with MLA gives Llama2-7B. *Source*: LIFE, Table 11.
_LATENT = LatentAttention(
    q_lora_rank=128, kv_lora_rank=128, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, absorbed=False
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """The (k, n) weights of one linear operator of a layer."""

    name: str
    k: int
    n: int

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return self.k * self.n


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """An architecture under a variant, as the paper composes it."""

    n_layers: int
    n_embd: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    v_head_dim: int
    n_ff: int
    n_vocab: int
    gated: bool
    #: Whether q, k and v, and gate and up, are one matrix each.
    fused_qkv: bool
    fused_gate_up: bool
    latent: LatentAttention | None
    weights: NumberFormat
    activations: NumberFormat
    kv: NumberFormat
    #: Whether attention and the feed-forward block are one operator each.
    fused: bool
    #: None without adapters.
    lora_rank: int | None

    @property
    def q_width(self) -> int:
        """Elements of a token's queries, all heads."""
        return self.n_heads * self.head_dim

    @property
    def v_width(self) -> int:
        """Elements of a token's mixed values, all heads."""
        return self.n_heads * self.v_head_dim

    @property
    def q_rope_width(self) -> int:
        """Elements of a token's queries that RoPE turns."""
        return self.q_width if self.latent is None else self.n_heads * self.latent.qk_rope_head_dim

    @property
    def k_rope_width(self) -> int:
        """Elements of a token's keys that RoPE turns; latent attention shares them between the heads."""
        return self.n_kv_heads * self.head_dim if self.latent is None else self.latent.qk_rope_head_dim

    @property
    def k_cache_width(self) -> int:
        """Elements of a position's keys in the cache; latent attention caches the part without position in full."""
        return self.n_kv_heads * (self.head_dim if self.latent is None else self.latent.qk_nope_head_dim)

    @property
    def v_cache_width(self) -> int:
        """Elements of a position's values in the cache."""
        return self.n_kv_heads * self.v_head_dim

    @property
    def cache_row_bytes(self) -> int:
        """Bytes of one position of one layer in the KV cache."""
        return self.kv.stored_bytes(self.k_cache_width) + self.kv.stored_bytes(self.v_cache_width)

    @property
    def q_table_width(self) -> int:
        """Elements of a position in the RoPE table of the queries; that of latent attention is as wide as they."""
        return self.head_dim if self.latent is None else self.q_rope_width

    @property
    def k_table_width(self) -> int:
        """Elements of a position in the RoPE table of the keys."""
        return self.head_dim if self.latent is None else self.k_rope_width

    @property
    def attention_inputs(self) -> tuple[Matrix, ...]:
        """The matrices before attention."""
        if self.latent is not None:
            return _latent_inputs(self, self.latent)
        kv_widths = (self.n_kv_heads * self.head_dim, self.v_cache_width)
        if self.fused_qkv:
            return (Matrix(name="qkv_proj", k=self.n_embd, n=self.q_width + sum(kv_widths)),)
        widths = zip(("q_proj", "k_proj", "v_proj"), (self.q_width, *kv_widths), strict=True)
        return tuple(Matrix(name=name, k=self.n_embd, n=width) for name, width in widths)

    @property
    def attention_output(self) -> Matrix:
        """The matrix after attention."""
        return Matrix(name="o_proj", k=self.v_width, n=self.n_embd)

    @property
    def feed_forward_inputs(self) -> tuple[Matrix, ...]:
        """The matrices before the activation function."""
        if self.fused_gate_up:
            return (Matrix(name="gate_up_proj", k=self.n_embd, n=2 * self.n_ff),)
        names = ("gate_proj", "up_proj") if self.gated else ("up_proj",)
        return tuple(Matrix(name=name, k=self.n_embd, n=self.n_ff) for name in names)

    @property
    def feed_forward_output(self) -> Matrix:
        """The matrix after the activation function."""
        return Matrix(name="down_proj", k=self.n_ff, n=self.n_embd)

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """All matrices of a layer, in order of use."""
        outputs = (self.attention_output, *self.feed_forward_inputs, self.feed_forward_output)
        return (*self.attention_inputs, *outputs)


def template_of(architecture: Architecture, variant: Variant, lora_rank: int = DEFAULT_LORA_RANK) -> Template:
    """Put a dense architecture under a variant; experts raise ArchitectureError.

    The variant with MLA gives every architecture without latent attention of its own the paper's ranks and heads.
    """
    if architecture.moe is not None:
        raise ArchitectureError(
            f"architecture {architecture.name!r}: moe has {architecture.moe.n_experts} experts, expected none under "
            "the paper's conventions, whose template is dense; use the conventions 'engine'"
        )
    template = generic_template(architecture, variant, lora_rank)
    latent = architecture.mla or (_LATENT if variant.mla else None)
    return template if latent is None else _with_latent(template, latent)


def generic_template(architecture: Architecture, variant: Variant, lora_rank: int = DEFAULT_LORA_RANK) -> Template:
    """Put any architecture under a variant with neither its experts nor its latent attention counted."""
    check_positive(lora_rank=lora_rank)
    feed_forward = architecture.family.feed_forward
    return Template(
        **{name: getattr(architecture, name) for name in _SAME},
        gated=feed_forward is not FeedForward.PLAIN,
        fused_gate_up=feed_forward is FeedForward.FUSED_GATED,
        latent=None,
        weights=find_format(variant.weights),
        activations=find_format(variant.activations),
        kv=find_format(variant.kv),
        fused=variant.fused,
        lora_rank=lora_rank if variant.lora else None,
    )


def _with_latent(template: Template, latent: LatentAttention) -> Template:
    """All heads have keys and values of their own, decompressed before they are cached."""
    return replace(
        template,
        n_kv_heads=template.n_heads,
        head_dim=latent.qk_nope_head_dim + latent.qk_rope_head_dim,
        v_head_dim=latent.v_head_dim,
        fused_qkv=False,
        latent=latent,
    )


def _latent_inputs(template: Template, latent: LatentAttention) -> tuple[Matrix, ...]:
    """Queries down to their rank and up to the heads, or straight; keys and values down and up."""
    q_width, n_embd = template.q_width, template.n_embd
    if latent.q_lora_rank is None:
        queries: tuple[Matrix, ...] = (Matrix(name="q_proj", k=n_embd, n=q_width),)
    else:
        queries = (
            Matrix(name="q_a_proj", k=n_embd, n=latent.q_lora_rank),
            Matrix(name="q_b_proj", k=latent.q_lora_rank, n=q_width),
        )
    decompressed = template.k_cache_width + template.v_cache_width
    return (
        *queries,
        Matrix(name="kv_a_proj", k=n_embd, n=latent.kv_lora_rank + latent.qk_rope_head_dim),
        Matrix(name="kv_b_proj", k=latent.kv_lora_rank, n=decompressed),
    )
