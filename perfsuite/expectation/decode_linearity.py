"""Decode's products with weights: their time should lie on a line over the bytes of their weights.

    time = constant + bytes / bandwidth

for each type of weights by itself, because a byte of one type is more arithmetic than a byte of another. *Source*:
ProfInfer, insights: decode matrix products are linear in their size, so a dense model's decode speed follows from its
hyperparameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from perfsuite.expectation.cases import LlamaWorkload
from perfsuite.expectation.ceilings import Ceilings
from perfsuite.expectation.graph import Operator
from perfsuite.expectation.op_rules import PRODUCTS
from perfsuite.records.events import Phase

#: Fewer different sizes make no line.
LEAST_SIZES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductSize:
    """One product of a step of decoding."""

    role: str
    layer: int | None
    #: ggml type of the weights, in lower case.
    type: str
    weight_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearityExpectation:
    """The products of a step of decoding, and where their weights are read from."""

    products: tuple[ProductSize, ...]
    #: All weights that a step reads: what passes before one of them is read again.
    working_set_bytes: int

    @property
    def types(self) -> tuple[str, ...]:
        """The types of weights that have enough sizes for a line."""
        kinds = dict.fromkeys(each.type for each in self.products)
        return tuple(kind for kind in kinds if self._n_sizes(kind) >= LEAST_SIZES)

    def slope_ns_per_byte(self, ceilings: Ceilings) -> float:
        """Return the time of a byte of weights, ns."""
        return 1e9 / ceilings.sustained_bandwidth_bytes_per_s(self.working_set_bytes)

    def _n_sizes(self, kind: str) -> int:
        return len({each.weight_bytes for each in self.products if each.type == kind})


def linearity_expectation(workload: LlamaWorkload) -> LinearityExpectation:
    """Return the products of one step of decoding, from shapes and types alone."""
    graph = workload.graph(Phase.DECODE)
    return LinearityExpectation(
        products=tuple(_products(graph)), working_set_bytes=sum(each.cost.parameter_bytes for each in graph)
    )


def has_line(workload: LlamaWorkload) -> bool:
    """Whether a scenario decodes with weights of enough sizes."""
    return workload.has_known_graph and workload.scenario.n_gen > 0 and bool(linearity_expectation(workload).types)


def _products(graph: tuple[Operator, ...]) -> Iterator[ProductSize]:
    for each in graph:
        if each.op in PRODUCTS and each.cost.parameter_bytes:
            yield ProductSize(
                role=each.role, layer=each.layer, type=each.sources[0].type, weight_bytes=each.cost.parameter_bytes
            )
