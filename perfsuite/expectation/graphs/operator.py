"""One operator of an analytical graph, and the roles that keep the operators of a layer apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import prod

from perfsuite.errors import ArchitectureError
from perfsuite.records.op_cost import NO_COST, OpCost
from perfsuite.workload.ggml_types import GGML_TYPES

Shape = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorShape:
    """A tensor as a cost sees it: its ggml type in lower case and its dimensions, innermost first."""

    type: str
    ne: Shape

    @property
    def n_elements(self) -> int:
        """Product of the dimensions."""
        return prod(self.ne)

    @property
    def n_bytes(self) -> int:
        """Stored size in bytes, packed."""
        return row_bytes(self.type, self.ne[0]) * prod(self.ne[1:])


def row_bytes(type_name: str, n_elements: int) -> int:
    """Return the stored bytes of a row of `n_elements` of a ggml type, such as 1.0625 bytes an element for Q8_0."""
    kind = GGML_TYPES.get(type_name.upper())
    if kind is None:
        raise ArchitectureError(f"'{type_name}' is not a ggml type")
    return kind.row_bytes(n_elements)


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
