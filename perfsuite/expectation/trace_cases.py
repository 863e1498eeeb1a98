"""The cases that are judged by a trace, enumerated without running anything, and what is expected of them.

The time of decode's products with weights should lie on a line over the bytes of their weights, for each type of
weights by itself, because a byte of one type is more arithmetic than a byte of another:

    time = constant + bytes / bandwidth

*Source*: ProfInfer, insights: decode matrix products are linear in their size.

The time of attention in a step of decoding should grow with the T positions in use, of which the busiest of n threads
works on x / n:

    time = constant + x * max(FLOPs of a position / FP32 peak, bytes of a position / bandwidth)

all layers together. x is T where queries and heads are cut among the threads and masked positions are skipped, the
padded T where scores are a plain product, and n times a thread's stretch of the cache where one query is cut along it
(`perfsuite.expectation.thread_rules`). Bytes are those of the cache, read from where all weights pass between two
steps; FLOPs and bytes of a position are the differences of the graphs of two lengths of the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, stdev
from types import MappingProxyType

import numpy as np

from perfsuite.expectation.graph import KV_PADDING, Batch, Operator, total_cost
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.op_rules import PRODUCTS, rule_of
from perfsuite.expectation.thread_rules import SPLIT_POSITIONS, BalanceExpectation, split_positions
from perfsuite.records.case import Case
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
        sizes: dict[str, set[int]] = {}
        for each in self.products:
            sizes.setdefault(each.type, set()).add(each.weight_bytes)
        return tuple(kind for kind, found in sizes.items() if len(found) >= LEAST_SIZES)

    def slope_ns_per_byte(self, ceilings: Ceilings) -> float:
        """Return the time of a byte of weights, ns."""
        return 1e9 / ceilings.sustained_bandwidth_bytes_per_s(self.working_set_bytes)


def linearity_expectation(workload: LlamaWorkload) -> LinearityExpectation:
    """Return the products of one step of decoding, from shapes and types alone."""
    graph = workload.graph(Phase.DECODE)
    return LinearityExpectation(
        products=tuple(
            ProductSize(
                role=each.role, layer=each.layer, type=each.sources[0].type, weight_bytes=each.cost.parameter_bytes
            )
            for each in graph
            if each.op in PRODUCTS and each.cost.parameter_bytes
        ),
        working_set_bytes=sum(each.cost.parameter_bytes for each in graph),
    )


def has_line(workload: LlamaWorkload) -> bool:
    """Whether a scenario decodes with weights of enough sizes."""
    return workload.has_graph and workload.scenario.n_gen > 0 and bool(linearity_expectation(workload).types)


#: Chance that a router without preference stays within its bounds.
COVERAGE_RATIO = 0.99

#: Runs that are simulated, fewer of long ones: their spread is small, and known well enough.
_MOST_RUNS, _LEAST_RUNS, _MOST_DRAWS = 200, 24, 100_000
_SEED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReuseExpectation:
    """What a router without preference does in a run; distances in steps."""

    n_experts: int
    n_used: int
    n_steps: int
    #: None where no run is long enough to see an expert twice.
    mean_distance: float | None
    lower_distance: float | None
    upper_distance: float | None
    #: How many distances a run of all layers is expected to see.
    n_distances: float

    @property
    def density_ratio(self) -> float:
        """Part of the experts that is active in a step of one token, exactly."""
        return self.n_used / self.n_experts


def reuse_expectation(n_experts: int, n_used: int, n_layers: int, n_steps: int) -> ReuseExpectation:
    """Return what a router without preference would do in `n_steps` of one token, over `n_layers` that route."""
    active = n_used / n_experts
    gaps = np.arange(1, max(2, n_steps), dtype=np.float64)
    weights = np.maximum(0.0, n_steps - gaps) * active**2 * (1.0 - active) ** (gaps - 1.0)
    n_distances = float(weights.sum()) * n_experts * n_layers
    mean = float((weights * gaps).sum() / weights.sum()) if weights.any() else None
    means = _simulated_means(n_experts, n_used, n_layers, n_steps) if n_steps > 1 else []
    within = NormalDist().inv_cdf((1.0 + COVERAGE_RATIO) / 2.0) * stdev(means) if len(means) > 1 else None
    return ReuseExpectation(
        n_experts=n_experts,
        n_used=n_used,
        n_steps=n_steps,
        mean_distance=mean,
        lower_distance=None if mean is None or within is None else mean - within,
        upper_distance=None if mean is None or within is None else mean + within,
        n_distances=n_distances,
    )


def _simulated_means(n_experts: int, n_used: int, n_layers: int, n_steps: int) -> list[float]:
    """Return the mean distance of simulated runs, where they have one; the same ones every time."""
    random = np.random.default_rng(_SEED)
    n_runs = max(_LEAST_RUNS, min(_MOST_RUNS, _MOST_DRAWS // (n_steps * n_layers)))
    last = np.full((n_runs, n_layers, n_experts), -1, dtype=np.int32)
    totals, counts = np.zeros(n_runs, dtype=np.int64), np.zeros(n_runs, dtype=np.int64)
    for step in range(n_steps):
        keys = random.random(last.shape, dtype=np.float32)
        chosen = np.argpartition(keys, n_used - 1, axis=2)[:, :, :n_used]
        before = np.take_along_axis(last, chosen, axis=2)
        is_again = before >= 0
        totals += np.where(is_again, step - before, 0).sum(axis=(1, 2))
        counts += is_again.sum(axis=(1, 2))
        np.put_along_axis(last, chosen, np.int32(step), axis=2)
    return [total / count for total, count in zip(totals.tolist(), counts.tolist(), strict=True) if count]


#: Fewer runs of a role have no median worth judging.
LEAST_RUNS = 8

#: What moves less than this is done in less than a recorder's own time, on any processor.
_LEAST_MOVED_BYTES = 16 << 10

#: Steps of decoding at which fused attention is looked at.
_MOST_STEPS = 16


def expected_balances(workload: LlamaWorkload, phase: Phase, n_threads: int) -> Mapping[str, BalanceExpectation]:
    """Return the balance of each role of a phase that the rules are known for, all its operators together.

    Operators of one role are weighted alike; fused attention is taken over the steps of decoding, and what a batch
    without outputs leaves empty counts for nothing.
    """
    found: dict[str, list[BalanceExpectation | None]] = {}
    for batch, operators in _graphs(workload, phase):
        for operator in (each for each in operators if each.output.n_elements):
            found.setdefault(operator.role, []).append(operator_balance(operator, n_threads, batch.n_used))
    return MappingProxyType(
        {role: _mean([each for each in each_of if each]) for role, each_of in found.items() if all(each_of)}
    )


def operator_balance(operator: Operator, n_threads: int, n_used: int) -> BalanceExpectation | None:
    """Return how evenly threads share an operator over `n_used` cached positions.

    None where no rule is known, and where there is nothing to share.
    """
    rule = rule_of(operator.op).threads
    return rule(operator, n_threads, n_used) if rule and operator.output.n_elements else None


def judged_roles(workload: LlamaWorkload, phase: Phase, n_threads: int) -> Sequence[str]:
    """Return the roles whose balance a run can show: often enough, and long enough for a recorder."""
    graph = workload.graph(phase)
    n_times = workload.scenario.n_gen if phase is Phase.DECODE else 1
    found = []
    for role in expected_balances(workload, phase, n_threads):
        mine = [each for each in graph if each.role == role]
        largest = max(each.cost.moved_bytes for each in mine)
        if len(mine) * n_times >= LEAST_RUNS and largest >= _LEAST_MOVED_BYTES:
            found.append(role)
    return found


def _graphs(workload: LlamaWorkload, phase: Phase) -> Sequence[tuple[Batch, tuple[Operator, ...]]]:
    graph = workload.graph(phase)
    batches = workload.batches(phase)
    if phase is not Phase.DECODE:
        n_each = len(graph) // len(batches)
        return [(batch, graph[at * n_each : (at + 1) * n_each]) for at, batch in enumerate(batches)]
    scenario = workload.scenario
    first, last = scenario.n_depth + scenario.n_prompt + 1, scenario.n_ctx
    steps = range(first, last + 1, max(1, (last + 1 - first) // _MOST_STEPS))
    others = tuple(each for each in graph if each.op != "FLASH_ATTN_EXT")
    attention = tuple(each for each in graph if each.op == "FLASH_ATTN_EXT")[:1]
    return [(batches[0], others), *((replace(batches[0], n_used=n_used), attention) for n_used in steps)]


def _mean(found: Sequence[BalanceExpectation]) -> BalanceExpectation:
    return BalanceExpectation(
        n_threads=found[0].n_threads,
        balance_ratio=sum(each.balance_ratio for each in found) / len(found),
        piece_ratio=max(each.piece_ratio for each in found),
        returns_at_once=all(each.returns_at_once for each in found),
    )


#: The kind of the cases, and the first part of their ids.
TRACE = "trace"

#: What is judged: the third part of an id behind the workload's two.
BALANCE = "balance"
ATTENTION_GROWTH = "attention_growth"
DECODE_LINEARITY = "decode_linearity"
EXPERT_REUSE = "expert_reuse"


def trace_cases(workload: LlamaWorkload, n_threads: int) -> Iterator[Case]:
    """Enumerate the cases of a workload: ``trace/<weights>/<scenario>/<what>``, for balance ``/<phase>/<role>`` too.

    The balance of each role that ggml's rules are known for and that is long enough to show, where there are threads to
    share it; the growth of
    attention and the linearity of products, where the scenario decodes; the reuse of experts, where there are any.
    """
    prefix = f"{TRACE}/{workload.prefix}"
    if not workload.has_graph:
        return
    if n_threads > 1:
        for phase in workload.graph_phases():
            for role in judged_roles(workload, phase, n_threads):
                yield Case(case_id=f"{prefix}/{BALANCE}/{phase.value}/{role}", kind=TRACE, phase=phase, role=role)
    for name, is_there in (
        (ATTENTION_GROWTH, has_growth(workload)),
        (DECODE_LINEARITY, has_line(workload)),
        (EXPERT_REUSE, workload.scenario.n_gen > 0 and n_routed_layers(workload) > 0),
    ):
        if is_there:
            yield Case(case_id=f"{prefix}/{name}", kind=TRACE, phase=Phase.DECODE)


def routed_experts(workload: LlamaWorkload) -> tuple[int, int]:
    """Return the experts of a layer that routes its tokens, and those that a token is routed to; 0 without any."""
    routed = (each for each in workload.graph(Phase.DECODE) if each.op == "MUL_MAT_ID")
    return next(((each.sources[0].ne[2], each.sources[2].ne[0]) for each in routed), (0, 0))


def n_routed_layers(workload: LlamaWorkload) -> int:
    """Return how many layers route their tokens to experts."""
    routed = (each.layer for each in workload.graph(Phase.DECODE) if each.op == "MUL_MAT_ID")
    return len(set(routed))
