"""The table of ggml's operators: all that the suite knows of each of them, in a row of its own.

An operator that the engine gains is one more row here; where none of the formulas fits, also one in `ggml_rules` or
`recurrent_rules` (FLOPs and bytes), `thread_rules` (how threads share it), `timing.shape_rules` or
`timing.state_shapes` (its sizes and what its time grows with). Names are those of ``ggml_op_desc``: unary and gated
operators have their own.

Views compute nothing and have no row, nor has what only training computes or a caller brings himself: `WITHOUT_ROW`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from math import prod
from types import MappingProxyType
from typing import Any

from perfsuite.expectation import ggml_rules, recurrent_rules, thread_rules
from perfsuite.expectation.graphs.operator import Operator, TensorShape
from perfsuite.expectation.graphs.operator import shape as tensor
from perfsuite.expectation.timing import shape_rules, state_shapes
from perfsuite.expectation.timing.operator_shape import SCALED_ROWS, OperatorShape

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

#: What stands in for an operator that was not measured, where its row says nothing else.
ELSE = "MUL"


@dataclass(frozen=True, slots=True)
class OpRule:
    """What is known of one operator."""

    #: As ``ggml_op_desc`` spells it, or what the suite calls it: ``RMS_NORM+MUL`` is what the CPU computes as one.
    name: str
    _: KW_ONLY
    #: What a forecast calls it, where its role says no more; see `operator_kinds`.
    kind: str
    cost: ggml_rules.CostRule
    #: The source that can be a parameter of the model, where only one is; a recorded graph says it of each.
    weight_source: int = 0
    #: The source that it writes into and does not read, such as the KV cache.
    destination: int | None = None
    #: The source whose type decides the fastest arithmetic: fused attention lists its queries first.
    typed_source: int = 0
    #: None where it is not known how threads share it.
    threads: thread_rules.ThreadRule | None = None
    axes: shape_rules.AxesRule = shape_rules.token_rows
    features: shape_rules.FeatureRule = shape_rules.row_terms
    #: Its tensors where it stands alone; None where nothing measures it so.
    alone: shape_rules.AloneRule | None = None
    #: What it is told there beside its tensors, in the order of ggml's ``op_params``.
    params: shape_rules.ParamsRule = lambda _: ()
    #: Which measured operator stands in for it where it was not measured itself.
    stand_in: str = ELSE
    #: Whether its output may take over the memory of a source of the same shape.
    in_place: bool = False

    def tensors_alone(self, shape: OperatorShape) -> tuple[TensorShape, Sequence[TensorShape]]:
        """Return the output and the sources of such an operator alone; of two operands where no more is known."""
        return (self.alone or shape_rules.rows_with())(shape)


_ALL_ROWS = thread_rules.by_rows(thread_rules.all_rows)
_SECOND_DIMENSION = thread_rules.by_rows(lambda operator: operator.output.ne[1])
_THIRD_DIMENSION = thread_rules.by_rows(lambda operator: operator.output.ne[2])
_ELEMENTS = thread_rules.by_rows(lambda operator: operator.output.n_elements)
_ON_ONE_THREAD = thread_rules.by_rows(lambda operator: 1)

#: Added to variances and sums of squares.
_EPSILON = 1e-6


def _told(*params: float) -> shape_rules.ParamsRule:
    return lambda _: params


def _each(name: str, flops: int, **known: Any) -> OpRule:
    """Return the row of an operator on each element, of one source unless more is known."""
    usual = {"threads": _ALL_ROWS, "alone": shape_rules.unary_alone, "in_place": True}
    return OpRule(name, cost=ggml_rules.elementwise(flops), **{**usual, **known})


def _copied(name: str, threads: thread_rules.ThreadRule | None, **known: Any) -> OpRule:
    """Return the row of an operator that moves elements and computes nothing."""
    usual = {"cost": ggml_rules.elementwise(0), "stand_in": "CPY"}
    return OpRule(name, kind="copy", threads=threads, **{**usual, **known})


def _channels(operator: Operator) -> int:
    """Count the channels of a kernel, by which its patches are shared: its third dimension, or its second of two."""
    width, height, depth, _ = operator.sources[0].ne
    return depth if depth > 1 and operator.output.ne[0] == width * height * depth else height


def _channels_of_volume(operator: Operator) -> int:
    return operator.output.ne[0] // max(1, prod(operator.sources[0].ne[:3]))


def _written_over(of: OperatorShape) -> tuple[int, ...]:
    """Return the strides by which a source replaces the whole of another, and where it begins."""
    row_bytes = 4 * of.n_inner
    return (row_bytes, row_bytes * max(1, of.n_heads), row_bytes * max(1, of.n_heads) * of.n_tokens, 0, 0)


_PRODUCTS = (
    OpRule(
        "MUL_MAT",
        kind="gemm",
        cost=ggml_rules.product,
        threads=thread_rules.by_pieces,
        axes=shape_rules.product_sides,
        features=shape_rules.product_terms,
        alone=shape_rules.product_alone,
    ),
    OpRule(
        "MUL_MAT_ID",
        kind="gemm",
        cost=ggml_rules.routed_product,
        threads=thread_rules.by_pieces,
        axes=shape_rules.expert_sides,
        features=shape_rules.expert_terms,
        alone=shape_rules.experts_alone,
    ),
    OpRule(
        "ADD_ID",
        kind="elementwise",
        cost=ggml_rules.routed_bias,
        weight_source=1,
        threads=_ALL_ROWS,
        axes=shape_rules.bias_sides,
        features=shape_rules.chosen_terms,
        alone=shape_rules.biases_alone,
        in_place=True,
    ),
    OpRule(
        "OUT_PROD",
        kind="gemm",
        cost=ggml_rules.outer_product,
        threads=thread_rules.by_rows(thread_rules.all_rows, meets=True),
    ),
    OpRule("FWHT", kind="rotation", cost=ggml_rules.hadamard, threads=_ALL_ROWS),
    OpRule(
        "SOLVE_TRI",
        kind="solve",
        cost=ggml_rules.triangular_solution,
        threads=thread_rules.by_rows(lambda operator: operator.output.ne[0] * prod(operator.output.ne[2:])),
        axes=state_shapes.solution_sides,
        features=state_shapes.solution_terms,
        alone=state_shapes.solution_alone,
    ),
)

_ATTENTION = (
    OpRule(
        "FLASH_ATTN_EXT",
        kind="attention",
        cost=ggml_rules.fused_attention,
        weight_source=4,
        typed_source=1,
        threads=thread_rules.by_heads_or_cache,
        axes=shape_rules.attention_sides,
        features=shape_rules.attention_terms,
        alone=shape_rules.attention_alone,
    ),
    OpRule(
        "SOFT_MAX",
        kind="softmax",
        cost=ggml_rules.elementwise(ggml_rules.SOFTMAX_FLOPS),
        weight_source=2,
        threads=_SECOND_DIMENSION,
        axes=shape_rules.rows_of_heads(heads=2, tokens=1),
        features=shape_rules.head_terms,
        alone=shape_rules.rows_with(),
        in_place=True,
    ),
    *(
        OpRule(
            name,  # latent attention of DeepSeek 4 turns its output back
            kind="rope",
            cost=ggml_rules.elementwise(ggml_rules.ROPE_FLOPS),
            threads=_ALL_ROWS,
            axes=shape_rules.rows_of_heads(heads=1, tokens=2),
            features=shape_rules.angle_terms,
            alone=alone,
            stand_in="ROPE",
            in_place=True,
        )
        for name, alone in (
            ("ROPE", shape_rules.rows_with(lambda of: (tensor("i32", of.n_tokens),))),
            ("ROPE_BACK", None),
        )
    ),
    OpRule(
        "LIGHTNING_INDEXER",
        kind="attention",
        cost=ggml_rules.index_scores,
        typed_source=1,
        threads=thread_rules.by_rows(lambda operator: operator.output.ne[0]),
        axes=state_shapes.index_sides,
        features=state_shapes.index_terms,
        alone=state_shapes.index_alone,
    ),
    OpRule("GET_REL_POS", kind="gather", cost=ggml_rules.elementwise(0), threads=thread_rules.by_every_thread),
    OpRule("ADD_REL_POS", kind="elementwise", cost=ggml_rules.elementwise(2)),
    *(
        OpRule(name, kind="elementwise", cost=ggml_rules.elementwise(0), in_place=True)
        for name in ("DIAG_MASK_INF", "DIAG_MASK_ZERO")
    ),
)

_NORMS = (
    OpRule(
        "RMS_NORM+MUL",
        kind="norm",
        cost=ggml_rules.elementwise(ggml_rules.NORM_FLOPS + 1),
        weight_source=1,
        threads=_SECOND_DIMENSION,
        axes=shape_rules.every_row,
        alone=shape_rules.rows_with(lambda of: (tensor("f32", of.n_inner),)),
        in_place=True,
    ),
    *(
        OpRule(
            name,
            kind="norm",
            cost=ggml_rules.elementwise(flops),
            threads=_SECOND_DIMENSION,
            axes=shape_rules.every_row,
            alone=shape_rules.unary_alone,
            params=_told(_EPSILON),
            stand_in="RMS_NORM+MUL",
            in_place=name == "RMS_NORM",
        )
        for name, flops in (
            ("RMS_NORM", ggml_rules.NORM_FLOPS),
            ("NORM", ggml_rules.LAYER_NORM_FLOPS),
            ("L2_NORM", ggml_rules.NORM_FLOPS),
        )
    ),
    OpRule(
        "GROUP_NORM",
        kind="norm",
        cost=ggml_rules.elementwise(ggml_rules.LAYER_NORM_FLOPS),
        axes=shape_rules.every_row,
        alone=shape_rules.unary_alone,
        params=_told(32, _EPSILON),
        stand_in="RMS_NORM+MUL",
    ),
)

_STATES = (
    OpRule(
        "SSM_CONV",
        kind="convolution",
        cost=recurrent_rules.short_convolution,
        weight_source=1,
        threads=thread_rules.by_rows(lambda operator: operator.sources[0].ne[1]),
        axes=state_shapes.convolution_sides,
        features=state_shapes.convolution_terms,
        alone=state_shapes.convolution_alone,
    ),
    OpRule(
        "SSM_SCAN",
        kind="recurrence",
        cost=recurrent_rules.state_scan,
        weight_source=3,
        threads=thread_rules.by_rows(lambda operator: operator.sources[1].ne[1]),
        axes=state_shapes.scan_sides,
        features=state_shapes.state_terms,
        alone=state_shapes.scan_alone,
        params=_told(1),
    ),
    *(
        OpRule(
            name,
            kind="recurrence",
            cost=recurrent_rules.linear_attention(*flops),
            weight_source=3,
            threads=thread_rules.by_rows(lambda operator: operator.sources[1].ne[1], meets=name != "RWKV_WKV7"),
            axes=state_shapes.state_sides,
            features=state_shapes.state_terms,
            alone=state_shapes.state_alone(n_rows, has_bonus=name == "RWKV_WKV6"),
            params=_told(1.0),
        )
        for name, flops, n_rows in (("RWKV_WKV6", (7,), 4), ("RWKV_WKV7", (9,), 6), ("GATED_LINEAR_ATTN", (5, 1), 4))
    ),
    OpRule(
        "GATED_DELTA_NET",
        kind="recurrence",
        cost=recurrent_rules.delta_net,
        threads=thread_rules.by_heads_and_sequences,
        axes=state_shapes.delta_sides,
        features=state_shapes.state_terms,
        alone=state_shapes.delta_alone,
        params=_told(1),
    ),
    OpRule(
        "DSV4_HC_COMB",
        kind="streams",
        cost=recurrent_rules.streams_mixing,
        weight_source=2,
        threads=_THIRD_DIMENSION,
        axes=state_shapes.mixing_sides,
        alone=state_shapes.mixing_alone,
        params=_told(_EPSILON, ggml_rules.SINKHORN_ROUNDS),
    ),
    OpRule(
        "DSV4_HC_PRE",
        kind="streams",
        cost=recurrent_rules.streams_joined,
        threads=_ELEMENTS,
        axes=state_shapes.joined_sides,
        features=state_shapes.stream_terms,
        alone=state_shapes.joined_alone,
        params=lambda of: (1.0, int(state_shapes.is_gated(of))),
    ),
    OpRule(
        "DSV4_HC_POST",
        kind="streams",
        cost=recurrent_rules.streams_parted,
        threads=_ELEMENTS,
        axes=state_shapes.parted_sides,
        features=state_shapes.stream_terms,
        alone=state_shapes.parted_alone,
    ),
)

_MOVES = (
    OpRule(
        "GET_ROWS",
        kind="gather",
        cost=ggml_rules.gather,
        threads=_ALL_ROWS,
        axes=shape_rules.gathered_rows,
        alone=shape_rules.gather_alone,
    ),
    OpRule(
        "SET_ROWS",
        kind="kv_store",
        cost=ggml_rules.scatter,
        destination=2,
        threads=thread_rules.by_rows(lambda operator: operator.sources[0].ne[1]),
        axes=shape_rules.stored_rows,
        alone=shape_rules.scatter_alone,
    ),
    _copied(
        "CPY",
        thread_rules.copied,
        cost=ggml_rules.copy,
        destination=1,
        alone=shape_rules.unary_alone,
        stand_in=ELSE,
    ),
    *(_copied(name, thread_rules.copied) for name in ("CONT", "DUP")),
    _copied(
        "REPEAT",
        _ON_ONE_THREAD,
        axes=shape_rules.repeated_rows,
        features=shape_rules.head_terms,
        alone=shape_rules.repeated_alone,
    ),
    _copied("CONCAT", _THIRD_DIMENSION, alone=shape_rules.halves_alone, stand_in=ELSE),
    *(
        _copied(name, None, cost=cost, alone=shape_rules.rows_with(), params=_written_over)
        for name, cost in (("SET", ggml_rules.elementwise(0)), ("ACC", ggml_rules.accumulated))
    ),
    _copied("PAD_REFLECT_1D", _SECOND_DIMENSION),
    _copied("PAD", _SECOND_DIMENSION, alone=shape_rules.unary_alone, params=_told(*[0] * 9)),
    _copied("ROLL", thread_rules.rolled),
    _copied("UPSCALE", _THIRD_DIMENSION),
    *(_copied(name, thread_rules.by_every_thread) for name in ("WIN_PART", "WIN_UNPART")),
    _copied("TRI", _ALL_ROWS, axes=shape_rules.every_row, alone=state_shapes.square_alone, params=_told(3)),
    _copied("DIAG", _ON_ONE_THREAD, axes=shape_rules.every_row, alone=state_shapes.diagonal_alone),
    _copied(
        "FILL",
        _ALL_ROWS,
        cost=ggml_rules.from_nothing(0),
        alone=shape_rules.unary_alone,
        params=_told(0.0),
        in_place=True,
    ),
    OpRule(
        "ARANGE",
        kind="copy",
        cost=ggml_rules.from_nothing(2),
        threads=_ELEMENTS,
        axes=shape_rules.every_row,
        alone=lambda of: (tensor("f32", of.n_inner), ()),
        params=lambda of: (0.0, float(of.n_inner), 1.0),
    ),
    OpRule(
        "TIMESTEP_EMBEDDING",
        kind="rope",
        cost=ggml_rules.elementwise(3),
        threads=thread_rules.by_rows(lambda operator: operator.output.ne[0] // 2),
    ),
)

_ROWS = (
    *(
        OpRule(
            name,
            kind="elementwise",
            cost=cost,
            threads=_ON_ONE_THREAD,
            axes=shape_rules.source_rows,
            alone=shape_rules.made_of_rows(lambda of: tensor("f32", 1, of.n_tokens)),
        )
        for name, cost in (("SUM_ROWS", ggml_rules.per_source_element(1)), ("MEAN", ggml_rules.mean))
    ),
    *(
        OpRule(
            name,
            kind=kind,
            cost=ggml_rules.per_source_element(1),
            threads=_ON_ONE_THREAD,
            axes=shape_rules.source_rows,
            alone=alone,
        )
        for name, kind, alone in (
            ("SUM", "elementwise", shape_rules.made_of_rows(lambda of: tensor("f32", 1))),
            ("ARGMAX", "routing", shape_rules.made_of_rows(lambda of: tensor("i32", of.n_tokens))),
        )
    ),
    OpRule(
        "COUNT_EQUAL",
        kind="elementwise",
        cost=ggml_rules.per_source_element(2),
        threads=thread_rules.by_rows(lambda operator: prod(operator.sources[0].ne[1:]), meets=True),
        axes=shape_rules.source_rows,
    ),
    _each("CUMSUM", 1, kind="elementwise", axes=shape_rules.every_row, in_place=False),
    *(
        OpRule(
            name,
            kind="routing",
            cost=cost,
            threads=_ALL_ROWS,
            axes=shape_rules.source_rows,
            alone=shape_rules.made_of_rows(lambda of: tensor("i32", max(1, min(of.n_used, of.n_inner)), of.n_tokens)),
            params=_told(*order),
        )
        for name, cost, order in (("ARGSORT", ggml_rules.sort, (1,)), ("TOP_K", ggml_rules.best, ()))
    ),
)

_IMAGES = (
    OpRule(
        "IM2COL",
        kind="convolution",
        cost=ggml_rules.columns_of_image,
        threads=thread_rules.by_rows(_channels),
        axes=state_shapes.patch_sides,
        alone=state_shapes.patch_alone,
        params=_told(1, 0, 0, 0, 1, 0, 0),
        stand_in="CPY",
    ),
    OpRule(
        "IM2COL_3D",
        kind="convolution",
        cost=ggml_rules.columns_of_image,
        threads=thread_rules.by_rows(_channels_of_volume),
        stand_in="CPY",
    ),
    OpRule(
        "COL2IM_1D",
        kind="convolution",
        cost=ggml_rules.per_source_element(1),
        threads=thread_rules.by_rows(lambda operator: operator.output.ne[0]),
    ),
    *(
        OpRule(name, kind="convolution", cost=cost)
        for name, cost in (
            ("CONV_2D", ggml_rules.convolution),
            ("CONV_2D_DW", ggml_rules.convolution),
            ("CONV_3D", ggml_rules.volume_convolution),
            ("CONV_TRANSPOSE_1D", ggml_rules.transposed_convolution(1)),
            ("CONV_TRANSPOSE_2D", ggml_rules.transposed_convolution(2)),
        )
    ),
    *(
        OpRule(
            name,
            kind="pool",
            cost=ggml_rules.per_source_element(1),
            threads=_ON_ONE_THREAD,
            axes=state_shapes.window_sides,
            features=shape_rules.chosen_terms,
            alone=state_shapes.window_alone,
            params=params,
        )
        for name, params in (
            ("POOL_1D", lambda of: (0, max(1, of.n_used), max(1, of.n_used), 0)),
            ("POOL_2D", lambda of: (0, max(1, of.n_used), 1, max(1, of.n_used), 1, 0, 0)),
        )
    ),
)

_ELEMENTWISE = (
    *(
        _each(name, 1, kind="elementwise", weight_source=1, alone=shape_rules.rows_with())
        for name in ("ADD", "SUB", "MUL", "DIV")
    ),
    _each("ADD1", 1, kind="elementwise", alone=None),
    OpRule(
        SCALED_ROWS,
        kind="elementwise",
        cost=ggml_rules.elementwise(1),
        alone=shape_rules.rows_with(lambda of: (tensor("f32", 1, max(1, of.n_heads), of.n_tokens),)),
    ),
    _each("SCALE", 1, kind="elementwise", params=_told(0.5, 0.0)),
    _each("CLAMP", 1, kind="elementwise", params=_told(-1.0, 1.0)),
    *(_each(name, 1, kind="activation") for name in ("SQR", "RELU")),
    *(
        _each(name, 1, kind="elementwise", in_place=name not in ("SIN", "COS"))
        for name in ("SQRT", "LOG", "SIN", "COS", "ABS", "NEG", "STEP", "EXP", "FLOOR", "CEIL", "ROUND", "TRUNC")
    ),
    *(_each(name, 2, kind="elementwise") for name in ("SGN", "EXPM1")),
    _each("TANH", 1, kind="elementwise", stand_in="SWIGLU"),
    _each(
        "LEAKY_RELU", 2, kind="activation", threads=_ON_ONE_THREAD, params=_told(0.1), stand_in="SWIGLU", in_place=False
    ),
    *(
        _each(name, flops, kind="activation", stand_in="SWIGLU")
        for name, flops in (
            ("SILU", ggml_rules.SILU_FLOPS),
            ("GELU", ggml_rules.GELU_FLOPS),
            ("GELU_ERF", ggml_rules.GELU_ERF_FLOPS),
            ("GELU_QUICK", ggml_rules.GELU_QUICK_FLOPS),
            ("SIGMOID", ggml_rules.SIGMOID_FLOPS),
            ("SOFTPLUS", recurrent_rules.SOFTPLUS_FLOPS),
            ("ELU", 3),
            ("HARDSWISH", 5),
            ("HARDSIGMOID", 4),
        )
    ),
    _each("XIELU", 8, kind="activation", params=_told(0, 0.8, 0.8, 0.5, -_EPSILON), stand_in="SWIGLU"),
    *(
        _each(
            name,
            flops + 1,
            kind="activation",
            alone=shape_rules.rows_with(),
            params=_told(0, 0, 1.702, 7.0),
            stand_in="SWIGLU",
            in_place=False,
        )
        for name, flops in (
            ("SWIGLU", ggml_rules.SILU_FLOPS),
            ("SWIGLU_OAI", ggml_rules.SILU_FLOPS + 4),
            ("SWIGLU_CLAMP", ggml_rules.SILU_FLOPS + 3),
            ("GEGLU", ggml_rules.GELU_FLOPS),
            ("GEGLU_ERF", ggml_rules.GELU_ERF_FLOPS),
            ("GEGLU_QUICK", ggml_rules.GELU_QUICK_FLOPS),
            ("REGLU", 1),
        )
    ),
)

_RULES = (*_PRODUCTS, *_ATTENTION, *_NORMS, *_STATES, *_MOVES, *_ROWS, *_IMAGES, *_ELEMENTWISE)

#: The operators that are known, by their names.
OPERATORS: Mapping[str, OpRule] = MappingProxyType({rule.name: rule for rule in _RULES})
#: Those that can be measured alone.
MEASURABLE = frozenset(rule.name for rule in _RULES if rule.alone is not None)
#: The products of matrices.
PRODUCTS = frozenset(rule.name for rule in _RULES if rule.kind == "gemm")


def rule_of(op: str) -> OpRule:
    """Return the row of an operator; one that has none, as of a calibration's file, is work on rows without a cost."""
    return OPERATORS.get(op) or OpRule(op, kind=op.lower(), cost=ggml_rules.elementwise(0))
