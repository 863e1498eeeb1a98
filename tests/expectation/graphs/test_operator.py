"""Roles of operators."""

from __future__ import annotations

from perfsuite.expectation.graph import Operator, total_cost
from perfsuite.expectation.graphs.operator import shape, with_distinct_roles
from perfsuite.expectation.op_cost import NO_COST, OpCost


def _operator(role: str, op: str, layer: int | None = 0) -> Operator:
    x = shape("F32", 8)
    return Operator(role=role, op=op, layer=layer, output=x, sources=(x,), cost=OpCost(flops=8))


def test_a_later_operator_of_another_kind_carries_it() -> None:
    """The second kind under one name in a layer is told by its operator; the first kind and other layers are not."""
    given = [
        _operator("Qcur", "MUL_MAT"),
        _operator("Qcur", "ROPE"),
        _operator("Qcur", "MUL_MAT"),
        _operator("Qcur", "ROPE", layer=1),
    ]
    assert [each.role for each in with_distinct_roles(given)] == ["Qcur", "Qcur_rope", "Qcur", "Qcur"]


def test_costs_add_up() -> None:
    """The cost of no operators is nothing, that of three is three times that of one."""
    assert total_cost(()) == NO_COST
    assert total_cost([_operator("a", "ADD")] * 3) == OpCost(flops=24, n_dispatches=3)


def test_a_shape_has_four_dimensions_and_a_type_in_lower_case() -> None:
    """Dimensions that are not given are 1."""
    assert (shape("Q8_0", 32, 2).type, shape("Q8_0", 32, 2).ne) == ("q8_0", (32, 2, 1, 1))
