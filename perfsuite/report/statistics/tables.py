"""The statistics of a trace on the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from perfsuite.records.codec import plain_fields
from perfsuite.records.events import Phase
from perfsuite.report.sheet import Sheet
from perfsuite.trace.statistics.crossover import Crossover, Winner
from perfsuite.trace.statistics.operator_statistics import LineFit, OperatorType
from perfsuite.trace.statistics.statistics_view import TraceStatistics
from perfsuite.trace.statistics.thread_balance import RoleBalance, ThreadShare
from perfsuite.trace.statistics.token_statistics import RoleGrowth, TokenStatistics
from perfsuite.trace.step_forecast import RobustLine
from perfsuite.units import format_bytes, format_bytes_per_s, format_count, format_flops_per_s, format_ns

_WINNER_WORDS = {
    Winner.DEVICE: "device throughout",
    Winner.CPU: "cpu throughout",
    Winner.UNKNOWN: "not known: too few dimensions",
}


def token_lines(tokens: TokenStatistics) -> Iterator[str]:
    """Say how many steps there are, and how a step of decoding grows with the context."""
    steps, decode = tokens.steps, tokens.steps.is_decode
    n_decode = int(decode.size)
    others = format_count(len(steps.number) - n_decode, "step")
    yield f"{format_count(n_decode, 'step')} of decoding, {others} of more tokens"
    if tokens.line is None:
        return
    first, last = (int(steps.context[decode].min()), int(steps.context[decode].max()))
    error = f"± {format_ns(tokens.line.slope_error_ns)}"
    if tokens.line.slope_ns:
        yield (
            f"a step takes {format_ns(tokens.line.at(first))} at {first} positions and "
            f"{format_ns(tokens.line.at(last))} at {last}: {format_ns(tokens.line.slope_ns)} a position, {error}"
        )
    else:
        yield f"a step takes {format_ns(tokens.line.at(last))} at {first} to {last} positions, {error} a position"
    share = tokens.attention_share_ratio
    if not tokens.growth:
        yield "which operators grow is not known: none were recorded"
    elif share is None:
        yield "no operator grows beyond its error"
    else:
        yield f"operators grow by {format_ns(tokens.growth_ns)} a position, of which attention carries {share:.0%}"


def growth_table(tokens: TokenStatistics, n_top: int) -> Sheet:
    """Show the roles whose time grows the most with the context."""
    columns: dict[str, Callable[[RoleGrowth], object]] = {
        "role": lambda each: each.role,
        "operator": lambda each: each.op,
        ">median": lambda each: format_ns(each.median_ns),
        ">a position": lambda each: f"{each.line.slope_ns:.1f} ns",
        ">of the growth": lambda each: None if each.share_ratio is None else f"{each.share_ratio:.0%}",
    }
    return Sheet.of([each for each in tokens.growth if each.line.slope_ns > 0][:n_top], columns)


def operator_table(operators: Sequence[OperatorType], phase: Phase, n_top: int) -> Sheet:
    """Show the types of operators of a phase: their share, their line, the rates of their largest dimensions."""
    shown = [each for each in operators if each.phase is phase][:n_top]
    columns: dict[str, Callable[[OperatorType], object]] = {
        f"{phase.value}: operator": lambda each: each.op,
        "type": lambda each: each.type,
        ">n": lambda each: each.n,
        ">total": lambda each: format_ns(each.total_ns),
        ">share": lambda each: f"{each.share_ratio:.1%}",
        ">largest MxNxKxH": lambda each: each.dimensions[-1].dimensions,
        ">median": lambda each: format_ns(each.dimensions[-1].median_ns),
        ">rate": lambda each: ((rate := each.dimensions[-1].flops_per_s) and format_flops_per_s(rate)) or None,
        ">bandwidth": lambda each: ((rate := each.dimensions[-1].bytes_per_s) and format_bytes_per_s(rate)) or None,
        ">R²": lambda each: None if each.fit is None or each.fit.r_squared is None else f"{each.fit.r_squared:.3f}",
    }
    if any(each.memory_access_bytes is not None for each in shown):
        columns[">memory"] = lambda each: format_bytes(each.memory_access_bytes)
    if any(each.stall_ratio is not None for each in shown):
        columns[">stalled"] = lambda each: None if each.stall_ratio is None else f"{each.stall_ratio:.0%}"
    return Sheet.of(shown, columns)


_THREADS: dict[str, Callable[[ThreadShare], object]] = {
    ">thread": lambda each: each.tid,
    "name": lambda each: each.name,
    ">operators": lambda each: each.n_operators,
    ">busy": lambda each: format_ns(each.busy_ns),
    ">waiting": lambda each: format_ns(each.waiting_ns),
    ">busy share": lambda each: f"{each.busy_ratio:.1%}",
}

_BALANCES: dict[str, Callable[[RoleBalance], object]] = {
    "role": lambda each: each.role,
    "operator": lambda each: each.op,
    "phase": lambda each: each.phase.value,
    ">n": lambda each: each.n_runs,
    ">busiest": lambda each: format_ns(each.busiest_ns),
    ">busiest/mean": lambda each: f"{each.balance_ratio:.2f} of {each.n_threads}",
    ">idle": lambda each: format_ns(each.idle_ns),
    "": lambda each: "one thread alone" if each.is_on_one_thread else "",
}


def expert_table(statistics: TraceStatistics, n_top: int) -> Sheet:
    """Show the experts that were active the most."""
    busiest = sorted(statistics.experts, key=lambda each: (-each.n_activations, each.layer, each.expert))
    rows = [
        (
            *(each.layer, each.expert, each.n_activations),
            None if each.mean_distance is None else f"{each.mean_distance:.1f}",
            format_ns(each.time_ns),
        )
        for each in busiest[:n_top]
    ]
    return Sheet((">layer", ">expert", ">activations", ">mean distance", ">time"), rows)


def crossover_table(found: Sequence[Crossover]) -> Sheet:
    """Show which side is faster from which size on."""
    columns: dict[str, Callable[[Crossover], object]] = {
        "phase": lambda each: each.phase.value,
        "operator": lambda each: each.op,
        "type": lambda each: each.type,
        ">sizes": lambda each: len(each.sides),
        ">largest": lambda each: each.sides[-1].dimensions,
        ">cpu": lambda each: format_ns(each.sides[-1].cpu_ns),
        ">device": lambda each: format_ns(each.sides[-1].device_ns),
        "faster": _faster,
    }
    return Sheet.of([each for each in found if each.sides], columns)


def statistics_tables(statistics: TraceStatistics, n_top: int) -> Iterator[str | Sheet]:
    """Yield the lines and tables of a trace, those left out that it tells nothing for, and what they lack."""
    yield from token_lines(statistics.tokens)
    if statistics.tokens.attention_share_ratio is not None:
        yield growth_table(statistics.tokens, n_top)
    if statistics.n_events and not statistics.operators:
        yield "operators: none were recorded"
    elif statistics.operators and not statistics.threads:
        yield "threads: not told, the recorder did not see when operators began and ended on each of them"
    for phase in dict.fromkeys(each.phase for each in statistics.operators):
        yield ""
        yield operator_table(statistics.operators, phase, n_top)
    if statistics.threads:
        yield ""
        yield Sheet.of(statistics.threads, _THREADS)
    if statistics.balances:
        yield ""
        yield Sheet.of(statistics.balances[:n_top], _BALANCES)
    if statistics.experts:
        yield ""
        yield expert_table(statistics, n_top)
    for problem in (*([f"it breaks off: {statistics.cut}"] if statistics.cut else ()), *statistics.problems):
        yield f"Not to be trusted: {problem}"


def _faster(found: Crossover) -> str:
    if found.work is None:
        return _WINNER_WORDS[found.winner]
    where = "" if found.is_measured else ", beyond what was measured"
    return f"{found.winner.value} {found.work:.3g}{where}"


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


def _line(fit: LineFit | None) -> dict[str, Any] | None:
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
        "fit_ns_over_work": _line(kind.fit),
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
        "cpu_ns_over_work": _line(found.cpu_line),
        "device_ns_over_work": _line(found.device_line),
        "dimensions": [
            {
                "dimensions": str(each.dimensions),
                "work": each.dimensions.work,
                **plain_fields(each, "cpu_ns", "device_ns", "speedup_ratio"),
            }
            for each in found.sides
        ],
    }
