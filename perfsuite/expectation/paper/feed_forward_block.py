"""The feed-forward block of the paper's template: from the norm to the residual, fused into one operator or not."""

from __future__ import annotations

from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.fusion import kept_on_chip
from perfsuite.expectation.operators.norms import rms_norm
from perfsuite.expectation.operators.pointwise import elementwise, piecewise_linear
from perfsuite.expectation.paper.operator_key import OperatorKey, Operators
from perfsuite.expectation.paper.projection import projection, residual
from perfsuite.expectation.paper.template import Template


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
