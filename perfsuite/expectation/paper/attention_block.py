"""The attention block of the paper's template: from the norm to the residual.

Unfused, every operator reads its inputs and writes its output. Fused, RoPE, scale, scores, softmax and mix are one
operator: it reads the queries and the scale's other operand, the new keys and values, and keys out of the cache.
"""

from __future__ import annotations

from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.fusion import kept_on_chip
from perfsuite.expectation.operators.matmul import DEQUANTIZE_FLOPS, bmm
from perfsuite.expectation.operators.norms import rms_norm, softmax
from perfsuite.expectation.operators.pointwise import elementwise
from perfsuite.expectation.paper.operator_key import OperatorKey, Operators
from perfsuite.expectation.paper.projection import projection, residual
from perfsuite.expectation.paper.rotary import RopeReach, rotary
from perfsuite.expectation.paper.template import Template


def attention_block(template: Template, m: int, n_past: int, reach: RopeReach) -> Operators:
    """List the operators for m tokens after n_past positions, all of which every token attends to."""
    yield OperatorKey.NORM, rms_norm(m, template.n_embd, activations=template.activations)
    for matrix in template.attention_inputs:
        yield from projection(template, m, matrix)
    yield from rotary(template, m, reach)
    yield OperatorKey.ELEMENTWISE, _scale(template, m, reach)
    yield from _cache(template, m, n_past)
    yield from _scores_and_mix(template, m, n_past + m)
    yield from projection(template, m, template.attention_output, on_chip=(False, template.fused))
    yield from residual(template, m)


def _scale(template: Template, m: int, reach: RopeReach) -> OpCost:
    """Scale the queries, an elementwise operator with two inputs; fused, what RoPE turned is on chip."""
    cost = elementwise(m, template.q_width, activations=template.activations)
    if not template.fused:
        return cost
    # Evaluated over the whole table, RoPE has not read the queries: the scale does.
    turned = 0 if reach is RopeReach.WHOLE_TABLE else m * template.q_rope_width
    kept_bytes = template.activations.stored_bytes(turned)
    return kept_on_chip(cost, read_bytes=kept_bytes, written_bytes=cost.written_bytes, n_dispatches=1)


def _cache(template: Template, m: int, n_past: int) -> Operators:
    """Read earlier positions once, write the new ones; fused, what RoPE has not read is read here."""
    past_bytes = n_past * template.cache_row_bytes
    read_bytes = past_bytes
    if template.fused:
        unread = template.v_cache_width + (0 if template.latent is None else template.k_cache_width)
        read_bytes += template.activations.stored_bytes(m * unread)
    new_bytes = m * template.cache_row_bytes
    yield (
        OperatorKey.KV_CACHE,
        OpCost(
            read_bytes=read_bytes,
            written_bytes=new_bytes,
            kv_read_bytes=past_bytes,
            kv_written_bytes=new_bytes,
            n_dispatches=0,
        ),
    )


def _scores_and_mix(template: Template, m: int, n_seen: int) -> Operators:
    """Multiply (heads, m, T) scores, their softmax and the mix; operands are repeated to all heads.

    Unfused, the scores are written twice and read twice. Quantised keys are dequantised for the scores, 2 FLOPs an
    element, values are not.
    """
    heads, activations, kv, fused = template.n_heads, template.activations, template.kv, template.fused
    if kv.is_quantized:
        elements = n_seen * template.q_width
        yield OperatorKey.DEQUANTIZE, OpCost(flops=DEQUANTIZE_FLOPS * elements, n_dispatches=0)
    k_bytes, v_bytes = n_seen * kv.stored_bytes(template.q_width), n_seen * kv.stored_bytes(template.v_width)
    scores = bmm(heads, m, template.head_dim, n_seen, activations=activations, right_bytes=k_bytes)
    weights = softmax(heads * m, n_seen, activations=activations)
    mix = bmm(heads, m, n_seen, template.v_head_dim, activations=activations, right_bytes=v_bytes)
    if fused:
        query_bytes = activations.stored_bytes(m * template.q_width)
        scores = kept_on_chip(scores, read_bytes=query_bytes, written_bytes=scores.written_bytes)
        weights = kept_on_chip(
            weights, read_bytes=weights.read_bytes, written_bytes=weights.written_bytes, n_dispatches=1
        )
        mix = kept_on_chip(mix, read_bytes=mix.read_bytes, n_dispatches=1)
    yield OperatorKey.BMM, scores
    yield OperatorKey.SOFTMAX, weights
    yield OperatorKey.BMM, mix
