"""One forward pass under the paper's conventions: a prompt, a chunk of it, or one decode step.

The attention block of the paper's template: from the norm to the residual.

Unfused, every operator reads its inputs and writes its output. Fused, RoPE, scale, scores, softmax and mix are one
operator: it reads the queries and the scale's other operand, the new keys and values, and keys out of the cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from types import MappingProxyType

from perfsuite.expectation.operators.matmul import (
    DEQUANTIZE_FLOPS,
    bmm,
    dequantize_weights,
    elementwise,
    embedding,
    kept_on_chip,
    linear,
    lora_update,
    piecewise_linear,
    rms_norm,
    softmax,
)
from perfsuite.expectation.operators.tiling import check_count, check_positive, chunk_bounds
from perfsuite.expectation.paper.rotary import RopeReach, rotary
from perfsuite.expectation.paper.template import (
    DEFAULT_LORA_RANK,
    Matrix,
    OperatorKey,
    Operators,
    Template,
    template_of,
)
from perfsuite.records.op_cost import NO_COST, OpCost, PassCost
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.variant import Variant


def projection(
    template: Template, m: int, matrix: Matrix, *, adapted: bool = True, on_chip: tuple[bool, bool] = (False, False)
) -> Operators:
    """Cost (m, k) x (k, n); `on_chip` says whether input and output stay there, the input with the dispatch."""
    product = linear(m, matrix.k, matrix.n, weights=template.weights, activations=template.activations)
    stays_in, stays_out = on_chip
    yield (
        OperatorKey.GEMM,
        kept_on_chip(
            product,
            read_bytes=stays_in * (product.read_bytes - product.parameter_bytes),
            written_bytes=stays_out * product.written_bytes,
            n_dispatches=int(stays_in),
        ),
    )
    if template.weights.is_quantized:
        yield OperatorKey.DEQUANTIZE, dequantize_weights(matrix.k, matrix.n)
    if adapted and template.lora_rank is not None:
        yield OperatorKey.LORA, lora_update(matrix.k, matrix.n, template.lora_rank)


def residual(template: Template, m: int) -> Operators:
    """Cost the addition of a block's input; fused, it happens in the operator before it."""
    cost = elementwise(m, template.n_embd, activations=template.activations)
    kept = template.fused * template.activations.stored_bytes(m * template.n_embd)
    yield OperatorKey.ELEMENTWISE, kept_on_chip(cost, read_bytes=kept, n_dispatches=int(template.fused))


def feed_forward_block(template: Template, m: int) -> Operators:
    """List the operators for m tokens; fused, the block reads its input once and keeps all between on chip."""
    fused = template.fused
    yield OperatorKey.NORM, rms_norm(m, template.n_embd, activations=template.activations)
    for index, matrix in enumerate(template.feed_forward_inputs):
        yield from projection(template, m, matrix, on_chip=(fused and index > 0, fused))
    silu = piecewise_linear(m * template.n_ff, activations=template.activations)
    yield OperatorKey.ACTIVATION, _inside(silu, fused)
    if template.gated:
        product = elementwise(m, template.n_ff, activations=template.activations)
        yield OperatorKey.ELEMENTWISE, _inside(product, fused)
    yield from projection(template, m, template.feed_forward_output, on_chip=(fused, fused))
    yield from residual(template, m)


def _inside(cost: OpCost, fused: bool) -> OpCost:
    """Keep all but the parameters of an operator in the middle of the block on chip."""
    if not fused:
        return cost
    return kept_on_chip(
        cost,
        read_bytes=cost.read_bytes - cost.parameter_bytes,
        written_bytes=cost.written_bytes,
        n_dispatches=cost.n_dispatches,
    )


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
    check_count(n_past=n_past)
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
    output = Matrix(name="lm_head", k=template.n_embd, n=template.n_vocab)
    yield from projection(template, m, output, adapted=False)


def layer_operators(template: Template, m: int, n_past: int, reach: RopeReach) -> Operators:
    """List the operators of one layer."""
    yield from attention_block(template, m, n_past, reach)
    yield from feed_forward_block(template, m)
