"""The statistics of a trace as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfsuite.records.codec import plain_fields
from perfsuite.trace.statistics.crossover import Crossover
from perfsuite.trace.statistics.operator_statistics import LineFit, OperatorType
from perfsuite.trace.statistics.statistics_view import TraceStatistics
from perfsuite.trace.statistics.token_statistics import TokenStatistics
from perfsuite.trace.step_forecast import RobustLine

#: Raised whenever a key of the JSON changes its meaning.
SCHEMA = 1

_THREAD = ("tid", "name", "n_operators", "busy_ns", "waiting_ns", "busy_ratio")
_BALANCE = (
    *("phase", "role", "op", "n_threads", "n_runs"),
    *("busiest_ns", "idle_ns", "balance_ratio", "is_on_one_thread"),
)
_EXPERT = ("layer", "expert", "n_activations", "mean_distance", "time_ns")


def plain_statistics(statistics: TraceStatistics) -> dict[str, Any]:
    """Return everything that a trace tells in figures."""
    return {
        "schema": SCHEMA,
        **plain_fields(statistics, "n_events", "n_lost", "n_operators"),
        "tokens": _tokens(statistics.tokens),
        "operators": [_operator(each) for each in statistics.operators],
        "threads": [plain_fields(each, *_THREAD) for each in statistics.threads],
        "balances": [plain_fields(each, *_BALANCE) | {"phase": each.phase.value} for each in statistics.balances],
        "experts": [plain_fields(each, *_EXPERT) for each in statistics.experts],
        "cut": statistics.cut,
        "problems": list(statistics.problems),
    }


def plain_crossover(found: Sequence[Crossover]) -> dict[str, Any]:
    """Return where a device becomes faster than the processor."""
    return {"schema": SCHEMA, "operators": [_crossover(each) for each in found]}


def plain_line(fit: LineFit | None) -> dict[str, Any] | None:
    """Return a line of least squares."""
    return None if fit is None else plain_fields(fit, "n_points", "slope", "intercept", "r_squared", "residual")


def _tokens(tokens: TokenStatistics) -> dict[str, Any]:
    steps = ("number", "n_tokens", "context", "duration_ns")
    return {
        **{name: getattr(tokens.steps, name).tolist() for name in steps},
        "growth": _robust(tokens.line),
        **plain_fields(tokens, "growth_ns", "attention_share_ratio"),
        "roles": [
            {
                **plain_fields(each, "role", "op", "is_attention", "median_ns", "share_ratio"),
                "growth": _robust(each.line),
            }
            for each in tokens.growth
        ],
    }


def _robust(line: RobustLine | None) -> dict[str, float] | None:
    names = ("slope_ns", "slope_error_ns", "level_ns", "deviation_ns")
    return None if line is None else {**plain_fields(line, *names), "newest_context": line.newest_step}


def _operator(kind: OperatorType) -> dict[str, Any]:
    of_all = ("op", "type", "n", "total_ns", "share_ratio", "memory_access_bytes", "stall_ratio")
    return {
        "phase": kind.phase.value,
        **plain_fields(kind, *of_all),
        "fit_ns_over_work": plain_line(kind.fit),
        "counted": dict(kind.counted),
        "dimensions": [
            {
                **plain_fields(each.dimensions, "m", "n", "k", "h", "work"),
                "roles": list(each.roles),
                "n_runs": each.n,
                **plain_fields(each, "median_ns", "total_ns", "flops_per_s", "bytes_per_s"),
            }
            for each in kind.dimensions
        ],
    }


def _crossover(found: Crossover) -> dict[str, Any]:
    return {
        "phase": found.phase.value,
        "winner": found.winner.value,
        **plain_fields(found, "op", "type", "work", "is_measured"),
        "cpu_ns_over_work": plain_line(found.cpu_line),
        "device_ns_over_work": plain_line(found.device_line),
        "dimensions": [
            {
                "dimensions": str(each.dimensions),
                "work": each.dimensions.work,
                **plain_fields(each, "cpu_ns", "device_ns", "speedup_ratio"),
            }
            for each in found.sides
        ],
    }
