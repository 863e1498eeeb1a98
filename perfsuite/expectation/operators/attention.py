"""Attention with keys and values of their own: multi-head, grouped-query and multi-query, whole blocks and the core.

Unlike the paper's composition, nothing is repeated to all heads, and the KV cache is read once. Every query attends to
every position that it may see, n_past + m of them or the sliding window, masked ones included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.dimensions import check_count, check_divisor, check_positive
from perfsuite.expectation.operators.lookup import rope
from perfsuite.expectation.operators.matmul import DEQUANTIZE_FLOPS, bmm, quantized_linear
from perfsuite.expectation.operators.norms import SOFTMAX_FLOPS, softmax
from perfsuite.expectation.operators.number_format import BF16, NumberFormat
from perfsuite.expectation.operators.pointwise import PIECEWISE_LINEAR_FLOPS, elementwise

#: Operations of a capped score: divide by the cap, tanh as a piecewise-linear function, multiply by the cap.
#: *Source*: Gemma 2 (2024), section 2, cap tanh(score / cap).
SOFTCAP_FLOPS = 2 + PIECEWISE_LINEAR_FLOPS


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionShape:
    """Dimensions of an attention block; any that is not positive, or heads that do not divide, are refused."""

    n_embd: int
    n_heads: int
    n_kv_heads: int
    #: Size of a query and key head, and of a value head.
    head_dim: int
    v_head_dim: int
    #: Whether queries, keys and values have a bias.
    qkv_bias: bool = False
    #: Whether scores are capped (Gemma 2).
    softcap: bool = False
    #: Positions that a query looks back, itself included; None for all.
    sliding_window: int | None = None

    def __post_init__(self) -> None:
        """Refuse dimensions that no attention has."""
        check_positive(n_embd=self.n_embd, n_heads=self.n_heads, head_dim=self.head_dim, v_head_dim=self.v_head_dim)
        check_divisor(self.n_heads, n_kv_heads=self.n_kv_heads)
        if self.sliding_window is not None:
            check_positive(sliding_window=self.sliding_window)

    @property
    def score_flops(self) -> int:
        """Operations of a score beside the two products."""
        return SOFTMAX_FLOPS + (SOFTCAP_FLOPS if self.softcap else 0)

    def n_scored(self, n_seen: int) -> int:
        """Positions that each query is scored against."""
        return n_seen if self.sliding_window is None else min(n_seen, self.sliding_window)

    def n_read(self, m: int, n_seen: int) -> int:
        """Positions of the cache that m queries need together: their windows overlap."""
        return n_seen if self.sliding_window is None else min(n_seen, self.sliding_window + m - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionFormats:
    """How weights, activations and the KV cache of an attention block are stored."""

    weights: NumberFormat = BF16
    activations: NumberFormat = BF16
    kv: NumberFormat = BF16


def attention_core(
    m: int,
    n_past: int,
    shape: AttentionShape,
    *,
    formats: AttentionFormats | None = None,
    fused: bool = False,
) -> OpCost:
    """Cost scores, softmax and mix of m queries over T = n_past + m cached positions.

    FLOPs 2 H m T (dk + dv) + 6 H m T, 4 more a score with a soft cap, and 2 an element of K and V that is read from a
    quantised cache. Fused reads q and the cache and writes m H dv; unfused, the scores are written and read twice, and
    once more each with a soft cap. *Source*: LIFE, BMM and softmax; H heads share H / n_kv_heads to one K and V.
    """
    check_positive(m=m)
    check_count(n_past=n_past)
    formats = formats or AttentionFormats()
    return _fused_core(m, n_past + m, shape, formats) if fused else _eager_core(m, n_past + m, shape, formats)


def attention_block(
    m: int,
    n_past: int,
    shape: AttentionShape,
    *,
    formats: AttentionFormats | None = None,
    fused: bool = False,
) -> OpCost:
    """Cost projections, RoPE, the write of K and V to the cache, `attention_core` and the output projection."""
    formats = formats or AttentionFormats()
    core = attention_core(m, n_past, shape, formats=formats, fused=fused)
    q_width, kv_widths = shape.n_heads * shape.head_dim, _kv_widths(shape)
    cost = core + _cache_write(m, kv_widths, formats)
    for width in (q_width, *kv_widths):
        cost += _projection(m, shape.n_embd, width, formats, shape.qkv_bias)
    for width in (q_width, kv_widths[0]):
        cost += rope(m, width, activations=formats.activations)
    return cost + _projection(m, shape.n_heads * shape.v_head_dim, shape.n_embd, formats, False)


def multi_head_attention(
    m: int, n_past: int, shape: AttentionShape, *, formats: AttentionFormats | None = None, fused: bool = False
) -> OpCost:
    """Cost a block in which every head has keys and values of its own."""
    return attention_block(m, n_past, replace(shape, n_kv_heads=shape.n_heads), formats=formats, fused=fused)


def multi_query_attention(
    m: int, n_past: int, shape: AttentionShape, *, formats: AttentionFormats | None = None, fused: bool = False
) -> OpCost:
    """Cost a block in which all heads share one head of keys and values."""
    return attention_block(m, n_past, replace(shape, n_kv_heads=1), formats=formats, fused=fused)


def _projection(m: int, k: int, n: int, formats: AttentionFormats, bias: bool) -> OpCost:
    return quantized_linear(m, k, n, weights=formats.weights, activations=formats.activations, bias=bias)


def _kv_widths(shape: AttentionShape) -> tuple[int, int]:
    return shape.n_kv_heads * shape.head_dim, shape.n_kv_heads * shape.v_head_dim


def _cache_write(m: int, widths: tuple[int, int], formats: AttentionFormats) -> OpCost:
    """Each position is a row of whole blocks; the copy reads what the projections wrote."""
    written = m * sum(formats.kv.stored_bytes(width) for width in widths)
    read = sum(formats.activations.stored_bytes(m * width) for width in widths)
    return OpCost(read_bytes=read, written_bytes=written, kv_written_bytes=written)


def _cache_bytes(m: int, n_seen: int, shape: AttentionShape, formats: AttentionFormats) -> tuple[int, int]:
    n_read = shape.n_read(m, n_seen)
    k_bytes, v_bytes = (n_read * formats.kv.stored_bytes(width) for width in _kv_widths(shape))
    return k_bytes, v_bytes


def _dequantize_flops(m: int, n_seen: int, shape: AttentionShape, formats: AttentionFormats) -> int:
    if not formats.kv.is_quantized:
        return 0
    return DEQUANTIZE_FLOPS * shape.n_read(m, n_seen) * sum(_kv_widths(shape))


def _fused_core(m: int, n_seen: int, shape: AttentionShape, formats: AttentionFormats) -> OpCost:
    n_scores = shape.n_heads * m * shape.n_scored(n_seen)
    cache_bytes = sum(_cache_bytes(m, n_seen, shape, formats))
    products = 2 * (shape.head_dim + shape.v_head_dim) + shape.score_flops
    return OpCost(
        flops=n_scores * products + _dequantize_flops(m, n_seen, shape, formats),
        read_bytes=formats.activations.stored_bytes(m * shape.n_heads * shape.head_dim) + cache_bytes,
        written_bytes=formats.activations.stored_bytes(m * shape.n_heads * shape.v_head_dim),
        kv_read_bytes=cache_bytes,
    )


def _eager_core(m: int, n_seen: int, shape: AttentionShape, formats: AttentionFormats) -> OpCost:
    """The right-hand sides of the products are the cache, at its own size."""
    heads, scored, activations = shape.n_heads, shape.n_scored(n_seen), formats.activations
    k_bytes, v_bytes = _cache_bytes(m, n_seen, shape, formats)
    cost = bmm(heads, m, shape.head_dim, scored, activations=activations, right_bytes=k_bytes)
    cost += softmax(heads * m, scored, activations=activations)
    cost += bmm(heads, m, scored, shape.v_head_dim, activations=activations, right_bytes=v_bytes)
    if shape.softcap:
        cost += elementwise(heads * m, scored, flops_per_element=SOFTCAP_FLOPS, n_inputs=1, activations=activations)
    flops = cost.flops + _dequantize_flops(m, n_seen, shape, formats)
    return replace(cost, flops=flops, kv_read_bytes=k_bytes + v_bytes)
