"""The statistics of a trace: across tokens, by type of operator, by thread, by expert."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfsuite.records.engine_trace import EngineTrace
from perfsuite.trace.experts.reuse import LayerReuse, expert_reuse
from perfsuite.trace.statistics.operator_runs import (
    OperatorRuns,
    OperatorTable,
    expert_products,
    operator_runs,
    operator_table,
)
from perfsuite.trace.statistics.operator_statistics import CostOf, OperatorType, operator_statistics
from perfsuite.trace.statistics.thread_balance import RoleBalance, ThreadShare, role_balances, thread_shares
from perfsuite.trace.statistics.token_statistics import TokenStatistics, steps_of, token_statistics


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertTime:
    """One expert of one layer."""

    layer: int
    expert: int
    n_activations: int
    mean_distance: float | None
    #: Its part of the layer's products with experts, by the rows that each expert was given; None where they were not
    #: timed.
    time_ns: float | None


def expert_times(layers: Sequence[LayerReuse], runs: OperatorRuns, table: OperatorTable) -> tuple[ExpertTime, ...]:
    """Return every expert of every layer, in their order."""
    by_step: Counter[tuple[int, int]] = Counter()
    durations_ns = runs.duration_ns
    for at, step, layer in expert_products(runs, table):
        by_step[step, layer] += int(durations_ns[at])
    return tuple(found for layer in layers for found in _of_layer(layer, by_step))


def _of_layer(layer: LayerReuse, by_step: Mapping[tuple[int, int], int]) -> list[ExpertTime]:
    rows: Counter[int] = Counter()
    for each in layer.activations:
        rows[each.iteration] += each.n_tokens
    spent: dict[int, float] = {}
    for each in layer.activations:
        time_ns = by_step.get((each.iteration, layer.layer))
        if time_ns is not None:
            spent[each.expert] = spent.get(each.expert, 0.0) + time_ns * each.n_tokens / rows[each.iteration]
    return [
        ExpertTime(
            layer=layer.layer,
            expert=use.expert,
            n_activations=use.n_activations,
            mean_distance=use.mean_distance,
            time_ns=spent.get(use.expert, 0.0) if spent else None,
        )
        for use in layer.uses()
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStatistics:
    """Everything that a trace shows in figures; a part that it does not show is empty."""

    n_events: int
    n_lost: int
    n_operators: int
    tokens: TokenStatistics
    operators: tuple[OperatorType, ...]
    threads: tuple[ThreadShare, ...]
    balances: tuple[RoleBalance, ...]
    layers: tuple[LayerReuse, ...]
    experts: tuple[ExpertTime, ...]
    #: Where and why the trace breaks off; None where it is whole.
    cut: str | None
    problems: tuple[str, ...]


def trace_statistics(trace: EngineTrace, cost_of: CostOf | None = None) -> TraceStatistics:
    """Put a trace of any recorder into figures; without `cost_of` there are no rates."""
    runs, table = operator_runs(trace), operator_table(trace)
    layers = expert_reuse(trace.experts, trace.n_experts)
    return TraceStatistics(
        n_events=int(trace.events.size),
        n_lost=trace.n_lost,
        n_operators=len(runs),
        tokens=token_statistics(steps_of(trace, runs, table), runs, table),
        operators=operator_statistics(runs, table, trace.counter_names, cost_of),
        threads=thread_shares(trace),
        balances=role_balances(runs, table),
        layers=layers,
        experts=expert_times(layers, runs, table),
        cut=trace.cut,
        problems=trace.problems,
    )
