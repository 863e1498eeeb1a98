"""An operator by its sizes: which fit it belongs to, what its time grows with, what it costs alone."""

from __future__ import annotations

from perfsuite.expectation.ggml_cost import cost_of
from perfsuite.expectation.graphs.operator import Operator
from perfsuite.expectation.graphs.request import Batch
from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.op_rules import rule_of
from perfsuite.expectation.timing.operator_shape import OperatorShape


def shape_of(operator: Operator, batch: Batch) -> OperatorShape:
    """Return the sizes of an operator of a graph; what has no row in the table is taken as work on rows."""
    return rule_of(operator.op).axes(operator, batch)


def family(shape: OperatorShape) -> tuple[str, str]:
    """Return what shares one fit: the operator, attention's products apart, and the type of its weights."""
    op = f"{shape.op}/heads" if shape.op == "MUL_MAT" and shape.n_heads else shape.op
    return op, shape.type


def features(shape: OperatorShape, n_tokens: int, n_threads: int) -> tuple[float, ...]:
    """Return the terms of an operator's time at `n_tokens` rows of activations; the first is the dispatch, 1."""
    return (1.0, *rule_of(shape.op).features(shape, n_tokens, n_threads))


def shape_cost(shape: OperatorShape) -> OpCost:
    """Return the FLOPs and bytes of an operator that stands alone, by the convention of the engine's graph."""
    return cost_of(shape.op, *rule_of(shape.op).tensors_alone(shape))
