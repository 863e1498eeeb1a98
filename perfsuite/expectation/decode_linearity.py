"""Decode's products with weights: their time should lie on a line over the bytes of their weights.

    time = constant + bytes / bandwidth

for each type of weights by itself, because a byte of one type is more arithmetic than a byte of another. *Source*:
ProfInfer, insights: decode matrix products are linear in their size, so a dense model's decode speed follows from its
hyperparameters.

How the time of attention in a step of decoding should grow with the context.

With T positions in use, of which the busiest thread works on x / n, n being the number of threads:

    time = constant + x * max(FLOPs of a position / FP32 peak, bytes of a position / bandwidth)

all layers together. x is T where queries and heads are cut among the threads and masked positions are skipped, the
padded T where scores are a plain product, and n times a thread's stretch of the cache where one query is cut along it
(`perfsuite.expectation.thread_rules`). Bytes are those of the cache, read from where all weights pass between two
steps; FLOPs and bytes of a position are the differences of the graphs of two lengths of the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from perfsuite.expectation.graph import KV_PADDING, Batch, Operator, total_cost
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.op_rules import PRODUCTS
from perfsuite.expectation.thread_rules import SPLIT_POSITIONS, split_positions
from perfsuite.records.ceilings import Ceilings
from perfsuite.records.events import Phase
from perfsuite.records.op_cost import OpCost

#: The roles of attention's own products and of the softmax between them.
_ROLES = ("kq", "kq_soft_max", "kqv")


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthExpectation:
    """What attention costs more, for each position that is worked on."""

    flops_per_position: float
    bytes_per_position: float
    #: Weights and cache, by which the cache's place in the memory hierarchy is found.
    working_set_bytes: int

    def slope_ns(self, ceilings: Ceilings) -> float:
        """Return the time of a position of all layers, ns."""
        compute_s = self.flops_per_position / ceilings.fp32_flops_per_s
        memory_s = self.bytes_per_position / ceilings.sustained_bandwidth_bytes_per_s(self.working_set_bytes)
        return max(compute_s, memory_s) * 1e9


def has_growth(workload: LlamaWorkload) -> bool:
    """Whether the growth of decoding can be expected: a known graph, generation, and a cache without a window."""
    if not workload.is_analytical or workload.scenario.n_gen <= 1:
        return False
    return workload.weights.architecture.sliding_window is None


def growth_expectation(workload: LlamaWorkload) -> GrowthExpectation:
    """Return what a position of context costs a step of decoding, from shapes and types alone."""
    last = workload.batch(workload.scenario.n_ctx)
    short, long = (_attention_cost(workload, each) for each in (last.n_kv, last.n_kv + KV_PADDING))
    return GrowthExpectation(
        flops_per_position=(long.flops - short.flops) / KV_PADDING,
        bytes_per_position=(long.moved_bytes - short.moved_bytes) / KV_PADDING,
        working_set_bytes=sum(each.cost.parameter_bytes + each.cost.kv_read_bytes for each in workload.operators(last)),
    )


def attended_positions(workload: LlamaWorkload, n_used: int, n_threads: int) -> int:
    """Return the positions that a step's attention takes as long as, idle threads included."""
    n_kv = workload.batch(n_used).n_kv
    settings = workload.settings
    if not settings.flash_attn:
        return n_kv
    is_split = n_kv >= SPLIT_POSITIONS and settings.type_k == settings.type_v == "f16"
    return split_positions(n_used, n_kv, n_threads) if is_split else n_used


def _attention_cost(workload: LlamaWorkload, n_kv: int) -> OpCost:
    """Cost the operators that work on the whole cache."""
    batch = Batch(n_tokens=1, n_outputs=1, n_used=n_kv, n_ctx=n_kv, n_ubatch=workload.n_ubatch)
    operators = workload.operators(batch)
    return total_cost(each for each in operators if each.op == "FLASH_ATTN_EXT" or each.role in _ROLES)


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
    return workload.has_graph and workload.scenario.n_gen > 0 and bool(linearity_expectation(workload).types)


def _products(graph: tuple[Operator, ...]) -> Iterator[ProductSize]:
    for each in graph:
        if each.op in PRODUCTS and each.cost.parameter_bytes:
            yield ProductSize(
                role=each.role, layer=each.layer, type=each.sources[0].type, weight_bytes=each.cost.parameter_bytes
            )
