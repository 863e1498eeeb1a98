"""An operator by its sizes: which fit it belongs to, what its time grows with, what it costs alone."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from perfsuite.expectation.graphs.operator import Batch, Operator, TensorShape
from perfsuite.expectation.op_rules import cost_of, rule_of
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.records.op_cost import OpCost

#: What an elementwise product moves and computes for an element; 2 FLOPs take no longer, for vectors hold several.
_ELEMENT_BYTES, _ELEMENT_FLOPS = 12, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LoneOperator:
    """An operator as ggml holds it."""

    #: Its output, and then its sources.
    tensors: tuple[TensorShape, ...]
    #: Words of its ``op_params``, floats by their bits; of a unary or gated operator the first is another's to set.
    params: tuple[int, ...]


def lone_operator(shape: OperatorShape) -> LoneOperator:
    """Return what an operator that stands alone is built of."""
    rule = rule_of(shape.op)
    output, sources = rule.tensors_alone(shape)
    return LoneOperator(tensors=(output, *sources), params=tuple(map(_word, rule.params(shape))))


def _word(param: float) -> int:
    """Return a whole number as it is, and a float by its 32 bits."""
    return param if isinstance(param, int) else int(struct.unpack("<i", struct.pack("<f", param))[0])


def shape_of(operator: Operator, batch: Batch) -> OperatorShape:
    """Return the sizes of an operator of a graph; what has no row in the table is taken as work on rows."""
    return rule_of(operator.op).axes(operator, batch)


def family(shape: OperatorShape) -> tuple[str, str]:
    """Return what shares one fit: the operator, and the type of its weights.

    Attention's products stand apart, and so do scans whose heads have one channel (Mamba's first): they take an
    exponential for each state.
    """
    is_apart = (shape.op == "MUL_MAT" and shape.n_heads > 0) or (shape.op == "SSM_SCAN" and shape.n_inner > 1)
    return f"{shape.op}/heads" if is_apart else shape.op, shape.type


def features(shape: OperatorShape, n_tokens: int, n_threads: int) -> tuple[float, ...]:
    """Return the terms of an operator's time at `n_tokens` rows of activations; the first is the dispatch, 1."""
    return (1.0, *rule_of(shape.op).features(shape, n_tokens, n_threads))


def shape_cost(shape: OperatorShape) -> OpCost:
    """Return the FLOPs and bytes of an operator that stands alone, by the convention of the engine's graph."""
    return cost_of(shape.op, *rule_of(shape.op).tensors_alone(shape))


def standing_in(shape: OperatorShape, op: str, type_name: str) -> OperatorShape:
    """Return the sizes of another operator that stands in for one.

    They are its own where both count the same, else rows of as many elements as an elementwise product would have that
    moves as many bytes, or computes as much where that takes longer.
    """
    if rule_of(op).axes is rule_of(shape.op).axes:
        return replace(shape, op=op, type=type_name)
    cost = shape_cost(shape)
    n_elements = max(cost.moved_bytes // _ELEMENT_BYTES, cost.flops // _ELEMENT_FLOPS)
    return OperatorShape(op=op, type=type_name, n_inner=max(1, n_elements // shape.n_tokens), n_tokens=shape.n_tokens)
