"""A linear operator of the template: the product, what its quantised weights cost, and its adapter."""

from __future__ import annotations

from perfsuite.expectation.operators.fusion import kept_on_chip
from perfsuite.expectation.operators.matmul import dequantize_weights, linear, lora_update
from perfsuite.expectation.operators.pointwise import elementwise
from perfsuite.expectation.paper.operator_key import OperatorKey, Operators
from perfsuite.expectation.paper.template import Matrix, Template


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
