"""The table of ggml's operators: all that the suite knows of each of them, in a row of its own.

An operator that the engine gains is one more row here, or in `state_rules`; where none of the formulas fits, also one
in `op_rule`, or in `thread_rules` (how threads share it). Names are those of ``ggml_op_desc``: unary and gated
operators have their own. Views compute nothing and have no row, nor has what only training computes or a caller brings
himself: `WITHOUT_ROW`.

FLOPs and bytes are counted by one convention, the same for the analytical graph and for a recorded one:

* 1 multiply-accumulate is 2 FLOPs; an exponential, a hyperbolic tangent, a division, a square root and a comparison
  are 1 each.
* Every tensor that an operator reads or writes is counted once, whole, at its stored size (quantised weights with
  their scales). Views, reshapes, permutations and transpositions cost nothing. Two views of one tensor are two
  operands: absorbed latent attention reads its values as a part of its keys, and both are counted.
* A gather or scatter moves only the rows that it touches, and its indices.
* A product with routed experts reads as many expert matrices as distinct experts must be expected (`experts_read`);
  its FLOPs are exact.
* Attention works on the KV cache as the engine pads it (a multiple of 256 positions), masked positions included.
* An operator that the engine computes together with its predecessor keeps its FLOPs; the tensor between the two does
  not move.
* A product with a Hadamard matrix is what the engine makes of it: a fast Walsh-Hadamard transform, which reads no
  matrix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, log2, prod
from types import MappingProxyType
from typing import Any

from perfsuite.errors import ArchitectureError
from perfsuite.expectation import thread_rules
from perfsuite.expectation.graphs.operator import KV_PADDING, Batch, Operator, TensorShape, row_bytes, shape
from perfsuite.expectation.op_rule import (
    ALL_ROWS,
    ELEMENTS,
    ELSE,
    ON_ONE_THREAD,
    SECOND_DIMENSION,
    THIRD_DIMENSION,
    AxesRule,
    OpRule,
    Sources,
    all_read,
    chosen_terms,
    distinct_experts,
    every_row,
    experts_read,
    f32,
    first_read,
    first_unread,
    head_terms,
    i32,
    made_of_rows,
    params,
    per_element,
    per_source_element,
    rows_bytes,
    rows_with,
    sized,
    source_rows,
    unary,
)
from perfsuite.expectation.state_rules import SIGMOID_FLOPS, SOFTPLUS_FLOPS, STATE_RULES
from perfsuite.expectation.thread_rules import SPLIT_POSITIONS, by_rows, split_positions
from perfsuite.expectation.timing.operator_shape import SCALED_ROWS, OperatorShape
from perfsuite.records.op_cost import OpCost

__all__ = ["ELSE", "MEASURABLE", "OPERATORS", "PRODUCTS", "WITHOUT_ROW", "OpRule", "cost_of", "rule_of"]

#: What has no row: views, and what no graph of inference holds. *Source*: ``enum ggml_op`` in
#: ``ggml/include/ggml.h`` of llama-cpp-python 0.3.36, whose rest a test holds against the rows.
WITHOUT_ROW = frozenset(
    {
        *("NONE", "VIEW", "RESHAPE", "PERMUTE", "TRANSPOSE"),
        *("MAP_CUSTOM1", "MAP_CUSTOM2", "MAP_CUSTOM3", "CUSTOM"),
        *("REPEAT_BACK", "SILU_BACK", "RMS_NORM_BACK", "GET_ROWS_BACK", "SOFT_MAX_BACK", "IM2COL_BACK"),
        *("POOL_2D_BACK", "FLASH_ATTN_BACK", "CROSS_ENTROPY_LOSS", "CROSS_ENTROPY_LOSS_BACK"),
        *("OPT_STEP_ADAMW", "OPT_STEP_SGD"),
    }
)

#: FLOPs of an element of a norm without its weight: square, add, scale. *Source*: LIFE's 4 h with the weight's product.
NORM_FLOPS = 3
#: FLOPs of an element of a layer norm without weight and bias: mean, difference, square, sum, scale.
LAYER_NORM_FLOPS = 5
#: FLOPs of an element under rotary embedding. *Source*: LIFE, 3 h.
ROPE_FLOPS = 3
#: FLOPs of a score in softmax: scale, mask, maximum, exponential, sum, division. *Source*: LIFE, 6 a score.
SOFTMAX_FLOPS = 6
#: FLOPs of x / (1 + exp(-x)), which gates are made of as well.
SILU_FLOPS = 4
#: FLOPs of x / 2 (1 + tanh(a x (1 + b x x))), the approximation that ggml's GELU uses.
GELU_FLOPS = 9
#: FLOPs of x / 2 (1 + erf(a x)), of which the error function is 1.
GELU_ERF_FLOPS = 5
#: FLOPs of x / (1 + exp(a x)).
GELU_QUICK_FLOPS = 4

#: Added to variances and sums of squares.
_EPSILON = 1e-6
#: Elements of a row of halves that the engine takes at once where its vectors are the longest: two of 512 bits.
#: *Source*: ``GGML_F16_STEP`` in ``ggml/src/ggml-cpu/simd-mappings.h`` of llama.cpp.
_VECTOR_ELEMENTS = 64


def _log2(size: int) -> int:
    return ceil(log2(max(1, size)))


def _on_elements(name: str, flops: int, **known: Any) -> OpRule:
    usual = {"threads": ALL_ROWS, "alone": unary, "in_place": True}
    return OpRule(name, flops=per_element(flops), **{**usual, **known})


def _copied(name: str, threads: thread_rules.ThreadRule | None, **known: Any) -> OpRule:
    return OpRule(name, kind="copy", threads=threads, **{"stand_in": "CPY", **known})


def _product_sides(operator: Operator, batch: Batch) -> OperatorShape:
    """Keep a product with parameters apart from one of attention, which has heads."""
    weights, x = operator.sources[:2]
    k, m = weights.ne[:2]
    n_matrices = prod(weights.ne[2:])
    if operator.cost.parameter_bytes:  # a matrix for each head, as in latent attention, is one with as many rows
        n_tokens = prod(x.ne[1:]) // n_matrices
        return sized(operator, weights.type, n_inner=k, n_outer=m * n_matrices, n_tokens=n_tokens)
    heads = {"n_heads": prod(x.ne[2:]), "n_kv_heads": n_matrices}
    return sized(operator, weights.type, n_inner=k, n_outer=m, n_tokens=x.ne[1], **heads)


def _product_alone(of: OperatorShape) -> tuple[TensorShape, Sources]:
    """A matrix, or one for each head of the cache, times the rows of all heads."""
    k, m, n, heads = of.n_inner, of.n_outer, of.n_tokens, of.n_heads
    return f32(m, n, heads), (shape(of.type, k, m, of.n_kv_heads), f32(k, n, heads))


def _product_terms(of: OperatorShape, _: int, __: int) -> tuple[float, ...]:
    """k m (weights streamed and multiplied), k (activations quantised), m (output); heads x k x m, heads x m."""
    k, m, heads = of.n_inner, of.n_outer, of.n_heads
    return (heads * k * m, heads * m) if heads else (k * m, k, m)


def _routed_reads(output: TensorShape, sources: Sources) -> tuple[int, ...]:
    """Experts (k, m, E), x (k, u or 1, n), chosen (u, n): the experts that are expected."""
    experts, chosen = sources[0], sources[2]
    read = experts.n_bytes // max(1, experts.ne[2]) * experts_read(experts.ne[2], *chosen.ne[:2])
    return (read, *all_read(output, sources[1:]))


def _expert_sides(operator: Operator, batch: Batch) -> OperatorShape:
    matrices, (_m, n_used, n_tokens, _) = operator.sources[0], operator.output.ne
    k, m, n_experts = matrices.ne[:3]
    routed = {"n_experts": n_experts, "n_used": n_used}
    return sized(operator, matrices.type, n_inner=k, n_outer=m, n_tokens=n_tokens, **routed)


def _experts_alone(of: OperatorShape) -> tuple[TensorShape, Sources]:
    k, m, n = of.n_inner, of.n_outer, of.n_tokens
    return f32(m, of.n_used, n), (shape(of.type, k, m, of.n_experts), f32(k, 1, n), i32(of.n_used, n))


def _expert_terms(of: OperatorShape, n_tokens: int, _: int) -> tuple[float, ...]:
    """k m for each distinct expert that is read, and for each expert of a token."""
    area = of.n_inner * of.n_outer
    return (area * distinct_experts(of.n_experts, of.n_used, n_tokens), area * of.n_used)


def _bias_reads(_: TensorShape, sources: Sources) -> tuple[int, ...]:
    """x (k, u, n), biases (k, E), chosen (u, n): the biases that are expected."""
    x, biases, chosen = sources
    return x.n_bytes, rows_bytes(biases, experts_read(biases.ne[1], *chosen.ne[:2])), chosen.n_bytes


def _bias_sides(operator: Operator, batch: Batch) -> OperatorShape:
    """Count the biases, one for each expert, and those that a token's rows are given."""
    k, n_used, n_tokens, _ = operator.output.ne
    return sized(operator, n_inner=k, n_tokens=n_tokens, n_experts=operator.sources[1].ne[1], n_used=n_used)


def _biases_alone(of: OperatorShape) -> tuple[TensorShape, Sources]:
    rows = f32(of.n_inner, of.n_used, of.n_tokens)
    return rows, (rows, f32(of.n_inner, of.n_experts), i32(of.n_used, of.n_tokens))


_PRODUCTS = (
    OpRule(
        "MUL_MAT",
        kind="gemm",
        # 2 k m n for each of the output's matrices.
        flops=lambda out, src: 2 * src[0].ne[0] * out.n_elements,
        threads=thread_rules.by_pieces,
        axes=_product_sides,
        features=_product_terms,
        alone=_product_alone,
    ),
    OpRule(
        "MUL_MAT_ID",
        kind="gemm",
        # 2 k m u n.
        flops=lambda out, src: 2 * src[0].ne[0] * out.n_elements,
        reads=_routed_reads,
        threads=thread_rules.by_pieces,
        axes=_expert_sides,
        features=_expert_terms,
        alone=_experts_alone,
    ),
    OpRule(
        "ADD_ID",
        kind="elementwise",
        flops=per_element(1),
        reads=_bias_reads,
        weight_source=1,
        threads=ALL_ROWS,
        axes=_bias_sides,
        features=chosen_terms,
        alone=_biases_alone,
        in_place=True,
    ),
    OpRule(
        "OUT_PROD",
        kind="gemm",
        # a (m, k), b (n, k): 2 k m n for each of the output's matrices (m, n).
        flops=lambda out, src: 2 * src[0].ne[1] * out.n_elements,
        threads=by_rows(thread_rules.all_rows, meets=True),
    ),
    OpRule(
        "FWHT",
        kind="rotation",
        # log2(k) additions and a scale for each element of a row of k; the matrix (k, k) stays unread.
        flops=lambda out, src: (_log2(src[0].ne[0]) + 1) * out.n_elements,
        reads=first_unread,
        threads=ALL_ROWS,
    ),
)


def _attention_flops(_: TensorShape, sources: Sources) -> int:
    """q (dk, n, h), k (dk, T, hk), v (dv, T, hk): 2 h n T (dk + dv) products and a softmax over h n T scores.

    Shapes do not show whether scores have a soft cap, which would be 3 FLOPs more for each.
    """
    query, key, value = sources[:3]
    return prod(query.ne[1:]) * key.ne[1] * (2 * (key.ne[0] + value.ne[0]) + SOFTMAX_FLOPS)


def _attention_sides(operator: Operator, batch: Batch) -> OperatorShape:
    """Count the positions that are in use: the engine skips masked ones, and a sliding window holds no more.

    Heads of several sequences stand side by side, as if they were one's.
    """
    query, key, value = operator.sources[:3]
    n_tokens, n_kv = query.ne[1], key.ne[1]
    return sized(
        operator,
        key.type,
        n_inner=(key.ne[0] + value.ne[0]) // 2,
        n_tokens=n_tokens,
        n_heads=query.ne[2] * query.ne[3],
        n_kv_heads=key.ne[2] * key.ne[3],
        n_past=max(0, min(batch.n_used, n_kv) - n_tokens),
    )


def _attention_alone(of: OperatorShape) -> tuple[TensorShape, Sources]:
    k, n, heads, n_kv = of.n_inner, of.n_tokens, of.n_heads, of.n_past + of.n_tokens
    cache = shape(of.type, k, n_kv, of.n_kv_heads)
    return f32(k, heads, n), (f32(k, n, heads), cache, cache, shape("f16", n_kv, n))


def _attention_terms(of: OperatorShape, n_tokens: int, n_threads: int) -> tuple[float, ...]:
    """Heads, heads x positions, heads x positions x size of a head, and heads of the cache x positions x size.

    The last is heads x positions x what is left of a head beside whole vectors, which takes an element at a time.
    """
    heads, positions = of.n_heads, _positions(of, n_tokens, n_threads)
    width = positions * of.n_inner
    left_over = heads * positions * (of.n_inner % _VECTOR_ELEMENTS)
    return (heads, heads * positions, heads * width, of.n_kv_heads * width, left_over)


def _positions(of: OperatorShape, n_tokens: int, n_threads: int) -> float:
    """Return the positions that a query sees on average, those of idle threads included."""
    if n_tokens > 1:
        return of.n_past + (n_tokens + 1) / 2
    n_visible = of.n_past + 1
    n_kv = -(-n_visible // KV_PADDING) * KV_PADDING
    is_split = n_kv >= SPLIT_POSITIONS and of.type in ("f16", "f32")
    return split_positions(n_visible, n_kv, n_threads) if is_split else n_visible


def _rows_of_heads(*, heads: int, tokens: int) -> AxesRule:
    """Count the heads and tokens by dimensions of the output; heads of several sequences stand side by side."""

    def rule(operator: Operator, batch: Batch) -> OperatorShape:
        ne = operator.output.ne
        return sized(operator, n_inner=ne[0], n_tokens=ne[tokens], n_heads=ne[heads] * ne[3])

    return rule


_ATTENTION = (
    OpRule(
        "FLASH_ATTN_EXT",
        kind="attention",
        flops=_attention_flops,
        weight_source=4,
        typed_source=1,
        threads=thread_rules.by_heads_or_cache,
        axes=_attention_sides,
        features=_attention_terms,
        alone=_attention_alone,
    ),
    OpRule(
        "SOFT_MAX",
        kind="softmax",
        flops=per_element(SOFTMAX_FLOPS),
        weight_source=2,
        threads=SECOND_DIMENSION,
        axes=_rows_of_heads(heads=2, tokens=1),
        features=head_terms,
        alone=rows_with(),
        in_place=True,
    ),
    *(
        OpRule(
            name,  # latent attention of DeepSeek 4 turns its output back
            kind="rope",
            flops=per_element(ROPE_FLOPS),
            threads=ALL_ROWS,
            axes=_rows_of_heads(heads=1, tokens=2),
            features=lambda of, _, __: (of.n_inner, of.n_heads * of.n_inner),  # the angles of a row, and all elements
            alone=alone,
            stand_in="ROPE",
            in_place=True,
        )
        for name, alone in (("ROPE", rows_with(lambda of: (i32(of.n_tokens),))), ("ROPE_BACK", None))
    ),
    OpRule("GET_REL_POS", kind="gather", threads=thread_rules.by_every_thread),
    OpRule("ADD_REL_POS", kind="elementwise", flops=per_element(2)),
    *(OpRule(name, kind="elementwise", in_place=True) for name in ("DIAG_MASK_INF", "DIAG_MASK_ZERO")),
)

_NORMS = (
    OpRule(
        "RMS_NORM+MUL",
        kind="norm",
        flops=per_element(NORM_FLOPS + 1),
        weight_source=1,
        threads=SECOND_DIMENSION,
        axes=every_row,
        alone=rows_with(lambda of: (f32(of.n_inner),)),
        in_place=True,
    ),
    *(
        OpRule(
            name,
            kind="norm",
            flops=per_element(flops),
            threads=threads,
            axes=every_row,
            alone=unary,
            params=params(*values, _EPSILON),
            stand_in="RMS_NORM+MUL",
            in_place=name == "RMS_NORM",
        )
        for name, flops, threads, values in (
            ("RMS_NORM", NORM_FLOPS, SECOND_DIMENSION, ()),
            ("NORM", LAYER_NORM_FLOPS, SECOND_DIMENSION, ()),
            ("L2_NORM", NORM_FLOPS, SECOND_DIMENSION, ()),
            ("GROUP_NORM", LAYER_NORM_FLOPS, None, (32,)),
        )
    ),
)


def _moved_rows(operator: Operator, type_name: str, rows: TensorShape) -> OperatorShape:
    return sized(operator, type_name, n_inner=rows.ne[0], n_outer=1, n_tokens=prod(rows.ne[1:]))


def _stored(of: OperatorShape) -> TensorShape:
    return shape(of.type, of.n_inner, of.n_outer)


def _repeated_rows(operator: Operator, batch: Batch) -> OperatorShape:
    source = operator.sources[0]
    n_times = operator.output.n_elements // max(1, source.n_elements)
    return sized(operator, n_inner=source.ne[0], n_tokens=prod(source.ne[1:]), n_heads=n_times)


def _halves_alone(of: OperatorShape) -> tuple[TensorShape, Sources]:
    row, first, rest = (f32(k, of.n_heads, of.n_tokens) for k in (of.n_inner, of.n_inner // 2, -(-of.n_inner // 2)))
    return row, (first, rest)


def _written_over(of: OperatorShape) -> tuple[int, ...]:
    """Return the strides by which a source replaces the whole of another, and where it begins."""
    row_bytes, heads = 4 * of.n_inner, max(1, of.n_heads)
    return (row_bytes, row_bytes * heads, row_bytes * heads * of.n_tokens, 0, 0)


def _squares(of: OperatorShape) -> TensorShape:
    """Return as many whole square matrices as there are rows for."""
    return f32(of.n_inner, of.n_inner, max(1, of.n_tokens // of.n_inner))


_MOVES = (
    OpRule(
        "GET_ROWS",
        kind="gather",
        reads=lambda out, src: (rows_bytes(src[0], prod(out.ne[1:])), *all_read(out, src[1:])),
        threads=ALL_ROWS,
        axes=lambda op, _: _moved_rows(op, op.sources[0].type, op.output),
        alone=lambda of: (f32(of.n_inner, of.n_tokens), (_stored(of), i32(of.n_tokens))),
    ),
    OpRule(
        "SET_ROWS",
        kind="kv_store",
        # The rows and their indices are read, and written in the destination's type.
        reads=lambda out, src: (*all_read(out, src[:2]), *(0 for _ in src[2:])),
        written=lambda out, src: row_bytes(out.type, src[0].ne[0]) * prod(src[0].ne[1:]),
        destination=2,
        threads=by_rows(lambda operator: operator.sources[0].ne[1]),
        axes=lambda op, _: _moved_rows(op, op.output.type, op.sources[0]),
        alone=lambda of: (_stored(of), (f32(of.n_inner, of.n_tokens), i32(of.n_tokens))),
    ),
    _copied("CPY", thread_rules.copied, reads=first_read, destination=1, alone=unary, stand_in=ELSE),
    *(_copied(name, thread_rules.copied) for name in ("CONT", "DUP")),
    _copied(
        "REPEAT",
        ON_ONE_THREAD,
        axes=_repeated_rows,
        features=head_terms,
        alone=lambda of: (f32(of.n_inner, of.n_heads, of.n_tokens), (f32(of.n_inner, 1, of.n_tokens),)),
    ),
    _copied("CONCAT", THIRD_DIMENSION, alone=_halves_alone, stand_in=ELSE),
    _copied("SET", None, alone=rows_with(), params=_written_over),
    # One addition for each element of the second source; the rest of the first is copied.
    _copied("ACC", None, flops=lambda _, src: src[1].n_elements, alone=rows_with(), params=_written_over),
    _copied("PAD_REFLECT_1D", SECOND_DIMENSION),
    _copied("PAD", SECOND_DIMENSION, alone=unary, params=params(*[0] * 9)),
    _copied("ROLL", thread_rules.rolled),
    _copied("UPSCALE", THIRD_DIMENSION),
    *(_copied(name, thread_rules.by_every_thread) for name in ("WIN_PART", "WIN_UNPART")),
    _copied("TRI", ALL_ROWS, axes=every_row, alone=lambda of: (_squares(of), (_squares(of),)), params=params(3)),
    _copied(
        "DIAG",
        ON_ONE_THREAD,
        axes=every_row,
        alone=lambda of: (_squares(of), (f32(of.n_inner, 1, _squares(of).ne[2]),)),
    ),
    # Made out of nothing; the source gives its shape alone.
    _copied("FILL", ALL_ROWS, reads=lambda _, src: (0,) * len(src), alone=unary, params=params(0.0), in_place=True),
    OpRule(
        "ARANGE",
        kind="copy",
        flops=per_element(2),
        threads=ELEMENTS,
        axes=every_row,
        alone=lambda of: (f32(of.n_inner), ()),
        params=lambda of: (0.0, float(of.n_inner), 1.0),
    ),
    OpRule(
        "TIMESTEP_EMBEDDING",
        kind="rope",
        flops=per_element(3),
        threads=by_rows(lambda operator: operator.output.ne[0] // 2),
    ),
)

_ROWS = (
    *(
        OpRule(name, kind=kind, flops=flops, threads=ON_ONE_THREAD, axes=source_rows, alone=made_of_rows(output))
        for name, kind, flops, output in (
            ("SUM_ROWS", "elementwise", per_source_element(1), lambda of: f32(1, of.n_tokens)),
            # One addition for each element of a row, and a division for the row.
            (
                "MEAN",
                "elementwise",
                lambda out, src: src[0].n_elements + out.n_elements,
                lambda of: f32(1, of.n_tokens),
            ),
            ("SUM", "elementwise", per_source_element(1), lambda of: f32(1)),
            ("ARGMAX", "routing", per_source_element(1), lambda of: i32(of.n_tokens)),
        )
    ),
    OpRule(
        "COUNT_EQUAL",
        kind="elementwise",
        flops=per_source_element(2),
        threads=by_rows(lambda operator: prod(operator.sources[0].ne[1:]), meets=True),
        axes=source_rows,
    ),
    _on_elements("CUMSUM", 1, kind="elementwise", axes=every_row, in_place=False),
    *(
        OpRule(
            name,
            kind="routing",
            flops=flops,
            threads=ALL_ROWS,
            axes=source_rows,
            alone=made_of_rows(lambda of: i32(min(of.n_used, of.n_inner), of.n_tokens)),
            params=params(*order),
        )
        for name, flops, order in (
            # log2(k) comparisons for each element of a row of k; or one each, and log2(k) for each of the k kept.
            ("ARGSORT", lambda out, _: _log2(out.ne[0]) * out.n_elements, (1,)),
            ("TOP_K", lambda out, src: src[0].n_elements + _log2(out.ne[0]) * out.n_elements, ()),
        )
    ),
)

_ELEMENTWISE = (
    *(
        _on_elements(name, 1, kind="elementwise", weight_source=1, alone=rows_with())
        for name in ("ADD", "SUB", "MUL", "DIV")
    ),
    _on_elements("ADD1", 1, kind="elementwise", alone=None),
    OpRule(
        SCALED_ROWS,
        kind="elementwise",
        flops=per_element(1),
        alone=rows_with(lambda of: (f32(1, of.n_heads, of.n_tokens),)),
    ),
    _on_elements("SCALE", 1, kind="elementwise", params=params(0.5, 0.0)),
    _on_elements("CLAMP", 1, kind="elementwise", params=params(-1.0, 1.0)),
    *(_on_elements(name, 1, kind="activation") for name in ("SQR", "RELU")),
    *(
        _on_elements(name, 1, kind="elementwise", in_place=name not in ("SIN", "COS"))
        for name in ("SQRT", "LOG", "SIN", "COS", "ABS", "NEG", "STEP", "EXP", "FLOOR", "CEIL", "ROUND", "TRUNC")
    ),
    *(_on_elements(name, 2, kind="elementwise") for name in ("SGN", "EXPM1")),
    _on_elements("TANH", 1, kind="elementwise", stand_in="SWIGLU"),
    _on_elements(
        "LEAKY_RELU", 2, kind="activation", threads=ON_ONE_THREAD, params=params(0.1), stand_in="SWIGLU", in_place=False
    ),
    *(
        _on_elements(name, flops, kind="activation", stand_in="SWIGLU")
        for name, flops in (
            *(("SILU", SILU_FLOPS), ("GELU", GELU_FLOPS), ("GELU_ERF", GELU_ERF_FLOPS)),
            *(("GELU_QUICK", GELU_QUICK_FLOPS), ("SIGMOID", SIGMOID_FLOPS), ("SOFTPLUS", SOFTPLUS_FLOPS)),
            *(("ELU", 3), ("HARDSWISH", 5), ("HARDSIGMOID", 4)),
        )
    ),
    _on_elements("XIELU", 8, kind="activation", params=params(0, 0.8, 0.8, 0.5, -_EPSILON), stand_in="SWIGLU"),
    *(
        _on_elements(
            name,
            flops + 1,
            kind="activation",
            alone=rows_with(),
            params=params(0, 0, 1.702, 7.0),
            stand_in="SWIGLU",
            in_place=False,
        )
        for name, flops in (
            *(("SWIGLU", SILU_FLOPS), ("SWIGLU_OAI", SILU_FLOPS + 4), ("SWIGLU_CLAMP", SILU_FLOPS + 3)),
            *(("GEGLU", GELU_FLOPS), ("GEGLU_ERF", GELU_ERF_FLOPS), ("GEGLU_QUICK", GELU_QUICK_FLOPS), ("REGLU", 1)),
        )
    ),
)

_RULES = (*_PRODUCTS, *_ATTENTION, *_NORMS, *STATE_RULES, *_MOVES, *_ROWS, *_ELEMENTWISE)

#: The operators that are known, by their names.
OPERATORS: Mapping[str, OpRule] = MappingProxyType({rule.name: rule for rule in _RULES})
#: Those that can be measured alone.
MEASURABLE = frozenset(rule.name for rule in _RULES if rule.alone is not None)
#: The products of matrices.
PRODUCTS = frozenset(rule.name for rule in _RULES if rule.kind == "gemm")


def rule_of(op: str) -> OpRule:
    """Return the row of an operator; one that has none, as of a calibration's file, is work on rows without a cost."""
    return OPERATORS.get(op) or OpRule(op, kind=op.lower())


def cost_of(
    op: str,
    output: TensorShape,
    sources: Sources,
    *,
    is_weight: bool = False,
    weight_sources: Sequence[int] = (),
    kv_sources: Sequence[int] = (),
) -> OpCost:
    """Cost one ggml operator, by its name in the table and its shapes as ggml has them.

    `weight_sources` are the places of the sources that are parameters of the model; `is_weight` says the same of the
    one source that usually is: the first, or what the table says, such as the second of `ADD`, `MUL` and
    ``RMS_NORM+MUL``. `kv_sources` are the places of those that are the KV cache: what is read of them are KV bytes, and
    a `SET_ROWS` or `CPY` whose destination is one writes into it. Raises ArchitectureError for an operator that the
    table has no row of.
    """
    rule = OPERATORS.get(op)
    if rule is None:
        raise ArchitectureError(f"no cost is known for the operator {op}; it needs a row in expectation/op_rules.py")
    reads, written = rule.reads(output, sources), rule.written(output, sources)
    usual = (min(rule.weight_source, len(reads) - 1),) if is_weight else ()  # sinks come last, with a mask or without
    return OpCost(
        flops=rule.flops(output, sources),
        read_bytes=sum(reads),
        written_bytes=written,
        parameter_bytes=sum(reads[place] for place in {*weight_sources, *usual}),
        kv_read_bytes=sum(reads[place] for place in kv_sources),
        kv_written_bytes=written if rule.destination in kv_sources else 0,
    )
