"""M x N x K x H."""

from __future__ import annotations

import pytest

from perfsuite.records.events import Node
from perfsuite.testing.engine_traces import node, tensor
from perfsuite.trace.statistics.operator_dimensions import dimensions_of, stored_type
from perfsuite.trace.statistics.traced_operators import traced_operators

from ...synthetic_statistics import attention, expert_product, norm, product

SCORES = node("MUL_MAT", tensor("kq-0", (256, 4, 9)), tensor("k", (64, 256, 3), type="f16"), tensor("q", (64, 4, 9)))


@pytest.mark.parametrize(
    ("traced", "dimensions", "type_name"),
    [
        (product("Qcur", 576, 192, n_tokens=7), "192x7x576x1", "q8_0"),
        (SCORES, "256x4x64x9", "f16"),
        (expert_product(0, n_used=2, n_tokens=3), "32x6x64x1", "q8_0"),
        (attention(512, n_tokens=2), "512x2x64x9", "f16"),
        (norm(576, n_tokens=5), "576x5x1x1", "f32"),
    ],
)
def test_each_kind_of_operator_has_its_dimensions(traced: Node, dimensions: str, type_name: str) -> None:
    """Products have rows, columns, inner length and heads; attention positions and queries; others their elements."""
    (operator,) = traced_operators([traced])
    assert str(dimensions_of(operator)) == dimensions
    assert stored_type(operator) == type_name


def test_work_is_the_product_of_all() -> None:
    """M N K H of a product with weights are its multiply-accumulates."""
    (operator,) = traced_operators([product("Qcur", 576, 192, n_tokens=7)])
    assert dimensions_of(operator).work == 576 * 192 * 7
