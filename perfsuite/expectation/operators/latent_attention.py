"""Multi-head latent attention (MLA): queries, keys and values through low-rank projections, a latent KV cache."""

from __future__ import annotations

from dataclasses import dataclass, replace

from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.attention import AttentionFormats, AttentionShape, attention_core
from perfsuite.expectation.operators.dimensions import check_count, check_positive
from perfsuite.expectation.operators.fusion import kept_on_chip
from perfsuite.expectation.operators.lookup import rope
from perfsuite.expectation.operators.matmul import DEQUANTIZE_FLOPS, bmm, dequantize_weights, quantized_linear


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentShape:
    """Dimensions of a latent attention block, in the words of DeepSeek-V2's configuration."""

    n_embd: int
    n_heads: int
    #: None where queries are projected directly.
    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int

    def __post_init__(self) -> None:
        """Refuse dimensions that no latent attention has."""
        names = ("n_embd", "n_heads", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
        check_positive(**{name: getattr(self, name) for name in names})
        if self.q_lora_rank is not None:
            check_positive(q_lora_rank=self.q_lora_rank)

    @property
    def head_dim(self) -> int:
        """Size of a query head: the part without position and the part with."""
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    @property
    def latent_width(self) -> int:
        """Elements of a position in the cache: the compressed keys and values, and the shared part with position."""
        return self.kv_lora_rank + self.qk_rope_head_dim


def latent_attention_block(
    m: int,
    n_past: int,
    shape: LatentShape,
    *,
    formats: AttentionFormats | None = None,
    fused: bool = False,
    absorbed: bool = False,
) -> OpCost:
    """Cost a block of m tokens over T = n_past + m latent positions of kv_lora_rank + qk_rope_head_dim elements.

    Decompressed, all T positions go through the (kv_lora_rank, H (nope + v)) matrix and attention is multi-head.
    Absorbed, queries are taken to the latent space (2 m H nope rank), attention has one latent key-value head of
    rank + rope against rank, and outputs are taken back (2 m H rank v).
    *Source*: DeepSeek-V2 (2024), section 2.1, and LIFE, MLA.
    """
    check_positive(m=m)
    check_count(n_past=n_past)
    formats = formats or AttentionFormats()
    inside = _absorbed if absorbed else _decompressed
    return (
        _queries(m, shape, formats)
        + _compressed(m, shape, formats)
        + inside(m, n_past, shape, formats, fused)
        + _linear(m, shape.n_heads * shape.v_head_dim, shape.n_embd, formats)
    )


def _linear(m: int, k: int, n: int, formats: AttentionFormats) -> OpCost:
    return quantized_linear(m, k, n, weights=formats.weights, activations=formats.activations)


def _queries(m: int, shape: LatentShape, formats: AttentionFormats) -> OpCost:
    width, rank = shape.n_heads * shape.head_dim, shape.q_lora_rank
    turned = rope(m, shape.n_heads * shape.qk_rope_head_dim, activations=formats.activations)
    if rank is None:
        return _linear(m, shape.n_embd, width, formats) + turned
    return _linear(m, shape.n_embd, rank, formats) + _linear(m, rank, width, formats) + turned


def _compressed(m: int, shape: LatentShape, formats: AttentionFormats) -> OpCost:
    """Project to the latent vector, turn its part with position, write it to the cache."""
    written = m * formats.kv.stored_bytes(shape.latent_width)
    cache = OpCost(
        read_bytes=formats.activations.stored_bytes(m * shape.latent_width),
        written_bytes=written,
        kv_written_bytes=written,
    )
    turned = rope(m, shape.qk_rope_head_dim, activations=formats.activations)
    return _linear(m, shape.n_embd, shape.latent_width, formats) + turned + cache


def _decompressed(m: int, n_past: int, shape: LatentShape, formats: AttentionFormats, fused: bool) -> OpCost:
    """Widen the latent cache into keys and values of all heads, which attention then reads as activations."""
    n_seen = n_past + m
    widened = _linear(n_seen, shape.kv_lora_rank, shape.n_heads * (shape.qk_nope_head_dim + shape.v_head_dim), formats)
    latent_bytes = formats.activations.stored_bytes(n_seen * shape.kv_lora_rank)
    plain = replace(formats, kv=formats.activations)
    core = attention_core(m, n_past, _all_heads(shape), formats=plain, fused=fused)
    return (
        kept_on_chip(widened, read_bytes=latent_bytes)
        + _cache_read(n_seen, shape, formats)
        + replace(core, kv_read_bytes=0)
    )


def _cache_read(n_seen: int, shape: LatentShape, formats: AttentionFormats) -> OpCost:
    """Read the latent vectors once, and dequantise them where they are quantised; part of what uses them."""
    n_bytes = n_seen * formats.kv.stored_bytes(shape.latent_width)
    flops = DEQUANTIZE_FLOPS * n_seen * shape.latent_width if formats.kv.is_quantized else 0
    return OpCost(flops=flops, read_bytes=n_bytes, kv_read_bytes=n_bytes, n_dispatches=0)


def _all_heads(shape: LatentShape) -> AttentionShape:
    return AttentionShape(
        n_embd=shape.n_embd,
        n_heads=shape.n_heads,
        n_kv_heads=shape.n_heads,
        head_dim=shape.head_dim,
        v_head_dim=shape.v_head_dim,
    )


def _absorbed(m: int, n_past: int, shape: LatentShape, formats: AttentionFormats, fused: bool) -> OpCost:
    """Take queries to the latent space and outputs back; values are the first part of the keys, read with them."""
    heads, rank, activations = shape.n_heads, shape.kv_lora_rank, formats.activations
    one_head = AttentionShape(
        n_embd=shape.n_embd, n_heads=heads, n_kv_heads=1, head_dim=shape.latent_width, v_head_dim=rank
    )
    core = attention_core(m, n_past, one_head, formats=replace(formats, kv=activations), fused=fused)
    cache = _cache_read(n_past + m, shape, formats)
    inside = replace(core, read_bytes=core.read_bytes - core.kv_read_bytes, kv_read_bytes=0) + cache
    into = _by_weights(m, shape.qk_nope_head_dim, rank, shape, formats)
    back = _by_weights(m, rank, shape.v_head_dim, shape, formats)
    return into + inside + back


def _by_weights(m: int, k: int, n: int, shape: LatentShape, formats: AttentionFormats) -> OpCost:
    """Multiply each head by its (k, n) share of the decompression's weights, dequantised on the way."""
    weight_bytes = formats.weights.matrix_bytes(k, shape.n_heads * n)
    product = bmm(shape.n_heads, m, k, n, activations=formats.activations, right_bytes=weight_bytes)
    product = replace(product, parameter_bytes=weight_bytes)
    return product + dequantize_weights(k, shape.n_heads * n) if formats.weights.is_quantized else product
