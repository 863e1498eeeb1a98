"""The statistics of a trace as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfsuite.trace.experts.statistics import ExpertTime
from perfsuite.trace.robust_line import RobustLine
from perfsuite.trace.statistics.crossover import Crossover
from perfsuite.trace.statistics.line_fit import LineFit
from perfsuite.trace.statistics.operator_statistics import OperatorType
from perfsuite.trace.statistics.statistics_view import TraceStatistics
from perfsuite.trace.statistics.thread_balance import RoleBalance, ThreadShare
from perfsuite.trace.statistics.token_statistics import TokenStatistics

#: Raised whenever a key of the JSON changes its meaning.
SCHEMA = 1


def plain_statistics(statistics: TraceStatistics) -> dict[str, Any]:
    """Return everything that a trace tells in figures."""
    return {
        "schema": SCHEMA,
        "n_events": statistics.n_events,
        "n_lost": statistics.n_lost,
        "n_operators": statistics.n_operators,
        "tokens": _tokens(statistics.tokens),
        "operators": [_operator(each) for each in statistics.operators],
        "threads": [_thread(each) for each in statistics.threads],
        "balances": [_balance(each) for each in statistics.balances],
        "experts": [_expert(each) for each in statistics.experts],
        "cut": statistics.cut,
        "problems": list(statistics.problems),
    }


def plain_crossover(found: Sequence[Crossover]) -> dict[str, Any]:
    """Return where a device becomes faster than the processor."""
    return {"schema": SCHEMA, "operators": [_crossover(each) for each in found]}


def plain_line(fit: LineFit | None) -> dict[str, Any] | None:
    """Return a line of least squares."""
    if fit is None:
        return None
    return {
        "n_points": fit.n_points,
        "slope": fit.slope,
        "intercept": fit.intercept,
        "r_squared": fit.r_squared,
        "residual": fit.residual,
    }


def _tokens(tokens: TokenStatistics) -> dict[str, Any]:
    steps = tokens.steps
    return {
        "number": steps.number.tolist(),
        "n_tokens": steps.n_tokens.tolist(),
        "context": steps.context.tolist(),
        "duration_ns": steps.duration_ns.tolist(),
        "growth": _robust(tokens.line),
        "growth_ns": tokens.growth_ns,
        "attention_share_ratio": tokens.attention_share_ratio,
        "roles": [
            {
                "role": each.role,
                "op": each.op,
                "is_attention": each.is_attention,
                "median_ns": each.median_ns,
                "share_ratio": each.share_ratio,
                "growth": _robust(each.line),
            }
            for each in tokens.growth
        ],
    }


def _robust(line: RobustLine | None) -> dict[str, float] | None:
    if line is None:
        return None
    return {
        "slope_ns": line.slope_ns,
        "slope_error_ns": line.slope_error_ns,
        "newest_context": line.newest_step,
        "level_ns": line.level_ns,
        "deviation_ns": line.deviation_ns,
    }


def _operator(kind: OperatorType) -> dict[str, Any]:
    return {
        "phase": kind.phase.value,
        "op": kind.op,
        "type": kind.type,
        "n": kind.n,
        "total_ns": kind.total_ns,
        "share_ratio": kind.share_ratio,
        "fit_ns_over_work": plain_line(kind.fit),
        "counted": dict(kind.counted),
        "memory_access_bytes": kind.memory_access_bytes,
        "stall_ratio": kind.stall_ratio,
        "dimensions": [
            {
                "m": each.dimensions.m,
                "n": each.dimensions.n,
                "k": each.dimensions.k,
                "h": each.dimensions.h,
                "work": each.dimensions.work,
                "roles": list(each.roles),
                "n_runs": each.n,
                "median_ns": each.median_ns,
                "total_ns": each.total_ns,
                "flops_per_s": each.flops_per_s,
                "bytes_per_s": each.bytes_per_s,
            }
            for each in kind.dimensions
        ],
    }


def _thread(thread: ThreadShare) -> dict[str, Any]:
    return {
        "tid": thread.tid,
        "name": thread.name,
        "n_operators": thread.n_operators,
        "busy_ns": thread.busy_ns,
        "waiting_ns": thread.waiting_ns,
        "busy_ratio": thread.busy_ratio,
    }


def _balance(balance: RoleBalance) -> dict[str, Any]:
    return {
        "phase": balance.phase.value,
        "role": balance.role,
        "op": balance.op,
        "n_threads": balance.n_threads,
        "n_runs": balance.n_runs,
        "busiest_ns": balance.busiest_ns,
        "idle_ns": balance.idle_ns,
        "balance_ratio": balance.balance_ratio,
        "is_on_one_thread": balance.is_on_one_thread,
    }


def _expert(expert: ExpertTime) -> dict[str, Any]:
    return {
        "layer": expert.layer,
        "expert": expert.expert,
        "n_activations": expert.n_activations,
        "mean_distance": expert.mean_distance,
        "time_ns": expert.time_ns,
    }


def _crossover(found: Crossover) -> dict[str, Any]:
    return {
        "phase": found.phase.value,
        "op": found.op,
        "type": found.type,
        "winner": found.winner.value,
        "work": found.work,
        "is_measured": found.is_measured,
        "cpu_ns_over_work": plain_line(found.cpu_line),
        "device_ns_over_work": plain_line(found.device_line),
        "dimensions": [
            {
                "dimensions": str(each.dimensions),
                "work": each.dimensions.work,
                "cpu_ns": each.cpu_ns,
                "device_ns": each.device_ns,
                "speedup_ratio": each.speedup_ratio,
            }
            for each in found.sides
        ],
    }
