"""One operator of an analytical graph, and the roles that keep the operators of a layer apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from perfsuite.expectation.op_cost import NO_COST, OpCost
from perfsuite.expectation.tensor_shape import Shape, TensorShape


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One operator of the analytical graph."""

    role: str
    op: str
    #: Layer number; None for what lies outside the layers.
    layer: int | None
    output: TensorShape
    sources: tuple[TensorShape, ...]
    cost: OpCost


def total_cost(operators: Iterable[Operator]) -> OpCost:
    """Sum the costs of operators."""
    return sum((operator.cost for operator in operators), start=NO_COST)


def with_distinct_roles(operators: Iterable[Operator]) -> Iterator[Operator]:
    """Let a later operator of another kind under the same name in a layer carry its operator (``Qcur_rope``)."""
    first: dict[tuple[str, int | None], str] = {}
    for operator in operators:
        if first.setdefault((operator.role, operator.layer), operator.op) == operator.op:
            yield operator
        else:
            yield replace(operator, role=f"{operator.role}_{operator.op.lower()}")


def shape(type_name: str, *ne: int) -> TensorShape:
    """Return a tensor's shape, dimensions that are not given being 1."""
    padded: Shape = (*ne, 1, 1, 1)[:4]  # type: ignore[assignment]
    return TensorShape(type=type_name.lower(), ne=padded)
