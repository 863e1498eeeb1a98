"""The table of ggml's operators: all that the suite knows of each of them, in a row of its own.

An operator that the engine gains is one more row here; where none of the formulas fits, also one in `ggml_rules`
(FLOPs and bytes), `thread_rules` (how threads share it) or `timing.shape_rules` (its sizes and what its time grows
with).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import Any

from perfsuite.expectation import ggml_rules, thread_rules
from perfsuite.expectation.graphs.operator import TensorShape
from perfsuite.expectation.graphs.operator import shape as tensor
from perfsuite.expectation.timing import shape_rules
from perfsuite.expectation.timing.operator_shape import SCALED_ROWS, OperatorShape

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
    #: Bytes of the source that can be a parameter of the model.
    weight_bytes: ggml_rules.WeightRule = ggml_rules.first_bytes
    #: Whether it writes into the KV cache, whose bytes it does not read.
    is_store: bool = False
    #: The source whose type decides the fastest arithmetic: fused attention lists its queries first.
    typed_source: int = 0
    #: None where it is not known how threads share it.
    threads: thread_rules.ThreadRule | None = None
    axes: shape_rules.AxesRule = shape_rules.token_rows
    features: shape_rules.FeatureRule = shape_rules.row_terms
    #: Its tensors where it stands alone; None where nothing measures it so.
    alone: shape_rules.AloneRule | None = None
    #: Which measured operator stands in for it where it was not measured itself.
    stand_in: str = ELSE
    #: Whether its output may take over the memory of a source of the same shape.
    in_place: bool = False

    def tensors_alone(self, shape: OperatorShape) -> tuple[TensorShape, Sequence[TensorShape]]:
        """Return the output and the sources of such an operator alone; of two operands where no more is known."""
        return (self.alone or shape_rules.rows_with())(shape)


_ALL_ROWS = thread_rules.by_rows(thread_rules.all_rows)
_SECOND_DIMENSION = thread_rules.by_rows(lambda operator: operator.output.ne[1])
_ON_ONE_THREAD = thread_rules.by_rows(lambda operator: 1)


def _each(name: str, flops: int, **known: Any) -> OpRule:
    return OpRule(name, cost=ggml_rules.elementwise(flops), threads=_ALL_ROWS, **known)


_RULES = (
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
        weight_bytes=ggml_rules.expert_bytes,
        threads=thread_rules.by_pieces,
        axes=shape_rules.expert_sides,
        features=shape_rules.expert_terms,
        alone=shape_rules.experts_alone,
    ),
    OpRule(
        "FLASH_ATTN_EXT",
        kind="attention",
        cost=ggml_rules.fused_attention,
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
        threads=_SECOND_DIMENSION,
        axes=shape_rules.rows_of_heads(heads=2, tokens=1),
        features=shape_rules.head_terms,
        alone=shape_rules.rows_with(),
        in_place=True,
    ),
    OpRule(
        "ROPE",
        kind="rope",
        cost=ggml_rules.elementwise(ggml_rules.ROPE_FLOPS),
        threads=_ALL_ROWS,
        axes=shape_rules.rows_of_heads(heads=1, tokens=2),
        features=shape_rules.angle_terms,
        alone=shape_rules.rows_with(lambda of: (tensor("i32", of.n_tokens),)),
        in_place=True,
    ),
    OpRule(
        "RMS_NORM+MUL",
        kind="norm",
        cost=ggml_rules.elementwise(ggml_rules.NORM_FLOPS + 1),
        weight_bytes=ggml_rules.second_bytes,
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
            stand_in="RMS_NORM+MUL",
        )
        for name, flops in (("RMS_NORM", ggml_rules.NORM_FLOPS), ("NORM", ggml_rules.LAYER_NORM_FLOPS))
    ),
    OpRule(
        "GET_ROWS",
        kind="gather",
        cost=ggml_rules.gather,
        weight_bytes=ggml_rules.gathered_bytes,
        threads=_ALL_ROWS,
        axes=shape_rules.gathered_rows,
        alone=shape_rules.gather_alone,
    ),
    OpRule(
        "SET_ROWS",
        kind="kv_store",
        cost=ggml_rules.scatter,
        is_store=True,
        threads=thread_rules.by_rows(lambda operator: operator.sources[0].ne[1]),
        axes=shape_rules.stored_rows,
        alone=shape_rules.scatter_alone,
    ),
    OpRule(
        "CPY",
        kind="copy",
        cost=ggml_rules.copy,
        threads=thread_rules.copied,
        alone=shape_rules.rows_with(lambda of: ()),
    ),
    OpRule("CONT", kind="copy", cost=ggml_rules.elementwise(0), threads=thread_rules.copied, stand_in="CPY"),
    OpRule("REPEAT", kind="copy", cost=ggml_rules.elementwise(0), threads=_ON_ONE_THREAD, stand_in="CPY"),
    OpRule(
        "CONCAT",
        kind="copy",
        cost=ggml_rules.elementwise(0),
        threads=thread_rules.by_rows(lambda operator: operator.output.ne[2]),
        alone=shape_rules.halves_alone,
    ),
    OpRule("SUM_ROWS", kind="elementwise", cost=ggml_rules.sum_rows, threads=_ON_ONE_THREAD),
    OpRule("ARGSORT", kind="routing", cost=ggml_rules.sort, threads=_ALL_ROWS),
    OpRule("FWHT", kind="rotation", cost=ggml_rules.hadamard, threads=_ALL_ROWS),
    *(
        _each(name, flops + 1, kind="activation", alone=shape_rules.rows_with(), stand_in="SWIGLU")
        for name, flops in (("SWIGLU", ggml_rules.SILU_FLOPS), ("GEGLU", ggml_rules.GELU_FLOPS))
    ),
    *(
        _each(
            name,
            1,
            kind="elementwise",
            weight_bytes=ggml_rules.second_bytes,
            alone=shape_rules.rows_with(),
            in_place=True,
        )
        for name in ("ADD", "MUL")
    ),
    OpRule(
        SCALED_ROWS,
        kind="elementwise",
        cost=ggml_rules.elementwise(1),
        alone=shape_rules.rows_with(lambda of: (tensor("f32", 1, max(1, of.n_heads), of.n_tokens),)),
    ),
    *(_each(name, 1, kind="elementwise", in_place=True) for name in ("DIV", "SCALE", "CLAMP")),
    *(_each(name, 1, kind="activation", in_place=True) for name in ("SQR", "RELU")),
    _each("TANH", 1, kind="elementwise", stand_in="SWIGLU", in_place=True),
    *(
        _each(name, flops, kind="activation", stand_in="SWIGLU", in_place=True)
        for name, flops in (("SILU", ggml_rules.SILU_FLOPS), ("GELU", ggml_rules.GELU_FLOPS))
    ),
)

#: The operators that are known, by their names.
OPERATORS: Mapping[str, OpRule] = MappingProxyType({rule.name: rule for rule in _RULES})
#: Those that can be measured alone.
MEASURABLE = frozenset(rule.name for rule in _RULES if rule.alone is not None)
#: The products of matrices.
PRODUCTS = frozenset(rule.name for rule in _RULES if rule.kind == "gemm")


def rule_of(op: str) -> OpRule:
    """Return the row of an operator; one that has none, as of a calibration's file, is work on rows without a cost."""
    return OPERATORS.get(op) or OpRule(op, kind=op.lower(), cost=ggml_rules.elementwise(0))
