"""The statistics of a trace: across tokens, by type of operator, by thread, by expert."""

from __future__ import annotations

from dataclasses import dataclass

from perfsuite.records.engine_trace import EngineTrace
from perfsuite.trace.experts.reuse import LayerReuse, expert_reuse
from perfsuite.trace.experts.statistics import ExpertTime, expert_times
from perfsuite.trace.statistics.operator_runs import operator_runs, operator_table
from perfsuite.trace.statistics.operator_statistics import CostOf, OperatorType, operator_statistics
from perfsuite.trace.statistics.thread_balance import RoleBalance, ThreadShare, role_balances, thread_shares
from perfsuite.trace.statistics.token_statistics import TokenStatistics, steps_of, token_statistics


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
