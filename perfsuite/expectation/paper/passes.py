"""One forward pass under the paper's conventions: a prompt, a chunk of it, or one decode step of a generic Llama.

Attention is grouped-query or latent, the feed-forward block gated or plain. Norms beside the two of a layer, biases,
sliding windows and soft caps are not counted. Experts have no place in it.

Where the paper leaves a choice: the output matrix and all matrices of a layer have the variant's weights, the embedding
bf16; everything between operators has the format of the activations, for QuaRot too, whose Hadamard transforms and
quantisation of activations have no stated cost and none here; latent vectors have no norm; adapters are computed in the
dispatch of their operator, in every pass, for the matrices of the layers alone.

Unfused, every operator reads its inputs and writes its output. Fused, RoPE, scale, scores, softmax and mix are one
operator: it reads the queries and the scale's other operand, the new keys and values, and keys out of the cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.operators.tiling import check_positive, chunk_bounds
from perfsuite.expectation.paper.operators import (
    BF16,
    DEQUANTIZE_FLOPS,
    ROPE_FLOPS,
    NumberFormat,
    bmm,
    dequantize_weights,
    elementwise,
    embedding,
    find_format,
    linear,
    lora_update,
    piecewise_linear,
    rms_norm,
    rope,
    softmax,
)
from perfsuite.records.op_cost import NO_COST, OpCost, PassCost
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
#: Tables' worth that one evaluation over the whole table reads and writes unfused: x, its turned halves and the
#: table in, x out. Fitted to Table 7, 0.25 GiB for 2 x 32 evaluations; fused it reads the table alone.
_WHOLE_READS, _WHOLE_WRITES = 3, 1
#: What a template has of its architecture as it is.
_SAME = ("n_layers", "n_embd", "n_heads", "n_kv_heads", "head_dim", "v_head_dim", "n_ff", "n_vocab", "fused_qkv")
#: The latent attention that the variant with MLA gives Llama2-7B. *Source*: LIFE, Table 11.
LIFE_LATENT = LatentAttention(
    q_lora_rank=128, kv_lora_rank=128, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, absorbed=False
)


class RopeReach(Enum):
    """Which positions RoPE is evaluated for, and which of its tables' rows it reads."""

    #: The tokens of the pass, and their rows of the tables: prefill.
    TOKENS = "tokens"
    #: The token alone, but the whole tables are read: decode in Tables 9 and 11.
    PER_TOKEN = "per-token"
    #: All positions of the tables for one token: decode in Tables 7 and 10.
    WHOLE_TABLE = "whole-table"


class Matrix(NamedTuple):
    """The (k, n) weights of one linear operator of a layer."""

    name: str
    k: int
    n: int


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
    def rope_widths(self) -> tuple[int, int]:
        """Elements of a token's queries and keys that RoPE turns; latent attention shares the keys' between heads."""
        if self.latent is None:
            return self.q_width, self.n_kv_heads * self.head_dim
        return self.n_heads * self.latent.qk_rope_head_dim, self.latent.qk_rope_head_dim

    @property
    def table_widths(self) -> tuple[int, int]:
        """Elements of a position in their RoPE tables; those of latent attention are as wide as what they turn."""
        return (self.head_dim, self.head_dim) if self.latent is None else self.rope_widths

    @property
    def cache_widths(self) -> tuple[int, int]:
        """Elements of a position's keys and values in the cache, of latent keys those without position."""
        key = self.head_dim if self.latent is None else self.latent.qk_nope_head_dim
        return self.n_kv_heads * key, self.n_kv_heads * self.v_head_dim

    @property
    def cache_row_bytes(self) -> int:
        """Bytes of one position of one layer in the KV cache."""
        return sum(map(self.kv.stored_bytes, self.cache_widths))

    @property
    def attention_inputs(self) -> tuple[Matrix, ...]:
        """The matrices before attention."""
        q_width, n_embd, latent = self.q_width, self.n_embd, self.latent
        if latent is not None:
            q_rank, kv_rank = latent.q_lora_rank, latent.kv_lora_rank
            queries = (
                (Matrix("q_proj", n_embd, q_width),)
                if q_rank is None
                else (Matrix("q_a_proj", n_embd, q_rank), Matrix("q_b_proj", q_rank, q_width))
            )
            down = Matrix("kv_a_proj", n_embd, kv_rank + latent.qk_rope_head_dim)
            return (*queries, down, Matrix("kv_b_proj", kv_rank, sum(self.cache_widths)))
        widths = (q_width, *self.cache_widths)
        if self.fused_qkv:
            return (Matrix("qkv_proj", n_embd, sum(widths)),)
        return tuple(map(Matrix, ("q_proj", "k_proj", "v_proj"), (n_embd,) * 3, widths))

    @property
    def attention_output(self) -> Matrix:
        """The matrix after attention."""
        return Matrix("o_proj", self.v_width, self.n_embd)

    @property
    def feed_forward_inputs(self) -> tuple[Matrix, ...]:
        """The matrices before the activation function."""
        if self.fused_gate_up:
            return (Matrix("gate_up_proj", self.n_embd, 2 * self.n_ff),)
        names = ("gate_proj", "up_proj") if self.gated else ("up_proj",)
        return tuple(Matrix(name, self.n_embd, self.n_ff) for name in names)

    @property
    def feed_forward_output(self) -> Matrix:
        """The matrix after the activation function."""
        return Matrix("down_proj", self.n_ff, self.n_embd)

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """All matrices of a layer, in order of use."""
        outputs = (self.attention_output, *self.feed_forward_inputs, self.feed_forward_output)
        return (*self.attention_inputs, *outputs)


def template_of(architecture: Architecture, variant: Variant, lora_rank: int = DEFAULT_LORA_RANK) -> Template:
    """Put a dense architecture under a variant; experts raise ArchitectureError.

    The variant with MLA gives every architecture without latent attention of its own the paper's ranks and heads, all
    of which have keys and values of their own, decompressed before they are cached.
    """
    if architecture.moe is not None:
        raise ArchitectureError(
            f"architecture {architecture.name!r}: moe has {architecture.moe.n_experts} experts, expected none under "
            "the paper's conventions, whose template is dense; use the conventions 'engine'"
        )
    template = generic_template(architecture, variant, lora_rank)
    latent = architecture.mla or (LIFE_LATENT if variant.mla else None)
    if latent is None:
        return template
    return replace(
        template,
        n_kv_heads=template.n_heads,
        head_dim=latent.qk_nope_head_dim + latent.qk_rope_head_dim,
        v_head_dim=latent.v_head_dim,
        fused_qkv=False,
        latent=latent,
    )


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


def _kept(cost: OpCost, *, reads: int = 0, writes: int = 0, n_dispatches: int = 0) -> OpCost:
    """Return the operator without some of its traffic and dispatches, which stay on chip."""
    return replace(
        cost,
        read_bytes=cost.read_bytes - reads,
        written_bytes=cost.written_bytes - writes,
        n_dispatches=cost.n_dispatches - n_dispatches,
    )


def _inside(cost: OpCost, fused: bool) -> OpCost:
    """Keep all but the parameters of an operator in the middle of a fused block on chip."""
    if not fused:
        return cost
    return replace(cost, read_bytes=cost.parameter_bytes, written_bytes=0, n_dispatches=0)


def _projection(
    template: Template, m: int, matrix: Matrix, *, adapted: bool = True, stays_in: bool = False, stays_out: bool = False
) -> Operators:
    _, k, n = matrix
    product = linear(m, k, n, weights=template.weights, activations=template.activations)
    reads = stays_in * (product.read_bytes - product.parameter_bytes)
    yield (
        OperatorKey.GEMM,
        _kept(product, reads=reads, writes=stays_out * product.written_bytes, n_dispatches=int(stays_in)),
    )
    if template.weights.is_quantized:
        yield OperatorKey.DEQUANTIZE, dequantize_weights(k, n)
    if adapted and template.lora_rank is not None:
        yield OperatorKey.LORA, lora_update(k, n, template.lora_rank)


def _residual(template: Template, m: int) -> Operators:
    """Cost the addition of a block's input; fused, it happens in the operator before it."""
    cost = elementwise(m, template.n_embd, activations=template.activations)
    kept = template.fused * template.activations.stored_bytes(m * template.n_embd)
    yield OperatorKey.ELEMENTWISE, _kept(cost, reads=kept, n_dispatches=int(template.fused))


def _feed_forward_block(template: Template, m: int) -> Operators:
    """List the operators for m tokens; fused, the block reads its input once and keeps all between on chip."""
    fused, activations = template.fused, template.activations
    yield OperatorKey.NORM, rms_norm(m, template.n_embd, activations=activations)
    for index, matrix in enumerate(template.feed_forward_inputs):
        yield from _projection(template, m, matrix, stays_in=fused and index > 0, stays_out=fused)
    yield OperatorKey.ACTIVATION, _inside(piecewise_linear(m * template.n_ff, activations=activations), fused)
    if template.gated:
        yield OperatorKey.ELEMENTWISE, _inside(elementwise(m, template.n_ff, activations=activations), fused)
    yield from _projection(template, m, template.feed_forward_output, stays_in=fused, stays_out=fused)
    yield from _residual(template, m)


def _attention_block(template: Template, m: int, n_past: int, reach: RopeReach) -> Operators:
    """List the operators for m tokens after n_past positions, all of which every token attends to."""
    yield OperatorKey.NORM, rms_norm(m, template.n_embd, activations=template.activations)
    for matrix in template.attention_inputs:
        yield from _projection(template, m, matrix)
    for cost in _whole_tables(template) if reach is RopeReach.WHOLE_TABLE else _rotary(template, m, reach):
        yield OperatorKey.ROPE, cost
    yield OperatorKey.ELEMENTWISE, _scale(template, m, reach)
    yield OperatorKey.KV_CACHE, _cache(template, m, n_past)
    yield from _scores_and_mix(template, m, n_past + m)
    yield from _projection(template, m, template.attention_output, stays_out=template.fused)
    yield from _residual(template, m)


def table_elements(template: Template) -> tuple[int, int]:
    """Elements of the RoPE tables of queries and keys, cosines and sines together; a layer reads each once."""
    q_width, k_width = template.table_widths
    return ROPE_POSITIONS * q_width, ROPE_POSITIONS * k_width


def _rotary(template: Template, m: int, reach: RopeReach) -> Iterator[OpCost]:
    """Cost RoPE on queries and keys; fused, what it turns stays on chip or goes straight into the KV cache."""
    n_rows = m if reach is RopeReach.TOKENS else ROPE_POSITIONS
    for width, table_width in zip(template.rope_widths, template.table_widths, strict=True):
        cost = rope(m, width, table_elements=n_rows * table_width, activations=template.activations)
        yield _kept(cost, writes=template.fused * cost.written_bytes, n_dispatches=int(template.fused))


def _whole_tables(template: Template) -> Iterator[OpCost]:
    """Queries, keys and, where they come from a quantised cache, keys once more."""
    q_elements, k_elements = table_elements(template)
    n_reads, n_writes = (1, 0) if template.fused else (_WHOLE_READS, _WHOLE_WRITES)
    for elements in (q_elements, k_elements, *((k_elements,) * template.kv.is_quantized)):
        table_bytes = BF16.stored_bytes(elements)
        yield OpCost(
            flops=ROPE_FLOPS * elements,
            read_bytes=n_reads * table_bytes,
            written_bytes=n_writes * table_bytes,
            parameter_bytes=table_bytes,
            n_dispatches=int(not template.fused),
        )


def _scale(template: Template, m: int, reach: RopeReach) -> OpCost:
    """Scale the queries, an elementwise operator with two inputs; fused, what RoPE turned is on chip."""
    cost = elementwise(m, template.q_width, activations=template.activations)
    if not template.fused:
        return cost
    # Evaluated over the whole table, RoPE has not read the queries: the scale does.
    turned = 0 if reach is RopeReach.WHOLE_TABLE else m * template.rope_widths[0]
    return _kept(cost, reads=template.activations.stored_bytes(turned), writes=cost.written_bytes, n_dispatches=1)


def _cache(template: Template, m: int, n_past: int) -> OpCost:
    """Read earlier positions once, write the new ones; fused, what RoPE has not read is read here."""
    past_bytes, new_bytes = n_past * template.cache_row_bytes, m * template.cache_row_bytes
    key, value = template.cache_widths
    unread = value + (0 if template.latent is None else key)
    return OpCost(
        read_bytes=past_bytes + template.fused * template.activations.stored_bytes(m * unread),
        written_bytes=new_bytes,
        kv_read_bytes=past_bytes,
        kv_written_bytes=new_bytes,
        n_dispatches=0,
    )


def _scores_and_mix(template: Template, m: int, n_seen: int) -> Operators:
    """Multiply (heads, m, T) scores, their softmax and the mix; operands are repeated to all heads.

    Unfused, the scores are written twice and read twice. Quantised keys are dequantised for the scores, 2 FLOPs an
    element, values are not.
    """
    heads, activations, kv = template.n_heads, template.activations, template.kv
    if kv.is_quantized:
        flops = DEQUANTIZE_FLOPS * n_seen * template.q_width
        yield OperatorKey.DEQUANTIZE, OpCost(flops=flops, n_dispatches=0)
    k_bytes, v_bytes = (n_seen * kv.stored_bytes(width) for width in (template.q_width, template.v_width))
    scores = bmm(heads, m, template.head_dim, n_seen, activations=activations, right_bytes=k_bytes)
    weights = softmax(heads * m, n_seen, activations=activations)
    mix = bmm(heads, m, n_seen, template.v_head_dim, activations=activations, right_bytes=v_bytes)
    if template.fused:
        scores = _kept(scores, reads=activations.stored_bytes(m * template.q_width), writes=scores.written_bytes)
        weights = _kept(weights, reads=weights.read_bytes, writes=weights.written_bytes, n_dispatches=1)
        mix = _kept(mix, reads=mix.read_bytes, n_dispatches=1)
    yield OperatorKey.BMM, scores
    yield OperatorKey.SOFTMAX, weights
    yield OperatorKey.BMM, mix


def prefill_pass(
    architecture: Architecture,
    variant: Variant,
    n_prompt: int,
    *,
    n_past: int = 0,
    lora_rank: int = DEFAULT_LORA_RANK,
    chunk: int | None = None,
) -> PassCost:
    """Cost a prompt of N tokens after `n_past` positions, at once or in chunks.

    Every token attends to all positions, N^2 scores of a head for a prompt at once; a chunk attends to those before it
    and itself. The output matrix runs on every token.

    Raises ArchitectureError: the architecture has experts, or a count is out of its range.
    """
    check_positive(n_prompt=n_prompt)
    template = template_of(architecture, variant, lora_rank)
    bounds = chunk_bounds(n_prompt, n_prompt if chunk is None else chunk, n_past)
    return pass_of(chain.from_iterable(pass_operators(template, m, past, RopeReach.TOKENS) for past, m in bounds))


def decode_pass(
    architecture: Architecture,
    variant: Variant,
    n_past: int,
    *,
    lora_rank: int = DEFAULT_LORA_RANK,
    rope: RopeReach = RopeReach.WHOLE_TABLE,
) -> PassCost:
    """Cost one token that attends to `n_past` earlier positions and itself.

    `rope` is `WHOLE_TABLE` as in the paper's Tables 7 and 10, or `PER_TOKEN` as in Table 9. Raises as `prefill_pass`.
    """
    return pass_of(pass_operators(template_of(architecture, variant, lora_rank), 1, n_past, rope))


def pass_of(operators: Iterable[tuple[OperatorKey, OpCost]]) -> PassCost:
    """Add operators up by their kind."""
    by_operator: dict[str, OpCost] = {}
    for key, cost in operators:
        by_operator[key.value] = by_operator.get(key.value, NO_COST) + cost
    return PassCost(by_operator=MappingProxyType(by_operator))


def pass_operators(template: Template, m: int, n_past: int, reach: RopeReach) -> Operators:
    """List the operators of a pass; layers are alike, so each operator of one is listed once, times the layers."""
    yield OperatorKey.EMBEDDING, embedding(m, template.n_vocab, template.n_embd)
    for key, cost in layer_operators(template, m, n_past, reach):
        yield key, cost * template.n_layers
    yield OperatorKey.NORM, rms_norm(m, template.n_embd, activations=template.activations)
    output = Matrix("lm_head", template.n_embd, template.n_vocab)
    yield from _projection(template, m, output, adapted=False)


def layer_operators(template: Template, m: int, n_past: int, reach: RopeReach) -> Operators:
    """List the operators of one layer."""
    yield from _attention_block(template, m, n_past, reach)
    yield from _feed_forward_block(template, m)
