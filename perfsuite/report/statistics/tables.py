"""The statistics of a trace on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.markup import escape
from rich.table import Column, Table

from perfsuite.records.events import Phase
from perfsuite.trace.statistics.crossover import Crossover, Winner
from perfsuite.trace.statistics.operator_statistics import OperatorType
from perfsuite.trace.statistics.statistics_view import TraceStatistics
from perfsuite.trace.statistics.thread_balance import RoleBalance, ThreadShare
from perfsuite.trace.statistics.token_statistics import TokenStatistics
from perfsuite.units import format_bytes, format_bytes_per_s, format_count, format_flops_per_s, format_ns

_MOST_ROLES = 3

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


def growth_table(tokens: TokenStatistics, n_top: int) -> Table:
    """Show the roles whose time grows the most with the context."""
    table = _table(Column("role", overflow="fold"), "operator", *_right("median", "a position", "of the growth"))
    for each in [each for each in tokens.growth if each.line.slope_ns > 0][:n_top]:
        share = "-" if each.share_ratio is None else f"{each.share_ratio:.0%}"
        table.add_row(escape(each.role), each.op, format_ns(each.median_ns), f"{each.line.slope_ns:.1f} ns", share)
    return table


def operator_table(operators: Sequence[OperatorType], phase: Phase, n_top: int) -> Table:
    """Show the types of operators of a phase: their share, their line, the rates of their largest dimensions."""
    mine = [each for each in operators if each.phase is phase][:n_top]
    counts_memory = any(each.memory_access_bytes is not None for each in mine)
    counts_stalls = any(each.stall_ratio is not None for each in mine)
    extra = [*(["memory"] if counts_memory else []), *(["stalled"] if counts_stalls else [])]
    names = ("n", "total", "share", "largest MxNxKxH", "median", "rate", "bandwidth", "R²", *extra)
    table = _table(Column(f"{phase.value}: operator", overflow="fold"), "type", *_right(*names))
    for each in mine:
        largest = each.dimensions[-1]
        counted = [
            *([format_bytes(each.memory_access_bytes)] if counts_memory else []),
            *(["-" if each.stall_ratio is None else f"{each.stall_ratio:.0%}"] if counts_stalls else []),
        ]
        table.add_row(
            each.op,
            each.type,
            str(each.n),
            format_ns(each.total_ns),
            f"{each.share_ratio:.1%}",
            str(largest.dimensions),
            format_ns(largest.median_ns),
            format_flops_per_s(largest.flops_per_s) if largest.flops_per_s else "-",
            format_bytes_per_s(largest.bytes_per_s) if largest.bytes_per_s else "-",
            "-" if each.fit is None or each.fit.r_squared is None else f"{each.fit.r_squared:.3f}",
            *counted,
        )
    return table


def thread_table(threads: Sequence[ThreadShare]) -> Table:
    """Show what each thread did within the evaluations."""
    table = _table(*_right("thread"), "name", *_right("operators", "busy", "waiting", "busy share"))
    for each in threads:
        busy, waiting = format_ns(each.busy_ns), format_ns(each.waiting_ns)
        table.add_row(str(each.tid), escape(each.name), str(each.n_operators), busy, waiting, f"{each.busy_ratio:.1%}")
    return table


def balance_table(balances: Sequence[RoleBalance], n_top: int) -> Table:
    """Show the roles that leave the most time of threads unused."""
    table = _table(
        Column("role", overflow="fold"), "operator", "phase", *_right("n", "busiest", "busiest/mean", "idle"), ""
    )
    for each in balances[:n_top]:
        table.add_row(
            escape(each.role),
            each.op,
            each.phase.value,
            str(each.n_runs),
            format_ns(each.busiest_ns),
            f"{each.balance_ratio:.2f} of {each.n_threads}",
            format_ns(each.idle_ns),
            "one thread alone" if each.is_on_one_thread else "",
        )
    return table


def expert_table(statistics: TraceStatistics, n_top: int) -> Table:
    """Show the experts that were active the most."""
    table = _table(*_right("layer", "expert", "activations", "mean distance", "time"))
    busiest = sorted(statistics.experts, key=lambda each: (-each.n_activations, each.layer, each.expert))
    for each in busiest[:n_top]:
        distance = "-" if each.mean_distance is None else f"{each.mean_distance:.1f}"
        table.add_row(str(each.layer), str(each.expert), str(each.n_activations), distance, format_ns(each.time_ns))
    return table


def crossover_table(found: Sequence[Crossover]) -> Table:
    """Show which side is faster from which size on."""
    table = _table("phase", "operator", "type", *_right("sizes", "largest", "cpu", "device"), "faster")
    for each in found:
        if each.sides:
            largest = each.sides[-1]
            table.add_row(
                each.phase.value,
                each.op,
                each.type,
                str(len(each.sides)),
                str(largest.dimensions),
                format_ns(largest.cpu_ns),
                format_ns(largest.device_ns),
                _faster(each),
            )
    return table


def statistics_tables(statistics: TraceStatistics, n_top: int) -> Iterator[str | Table]:
    """Yield the lines and tables of a trace, those left out that it tells nothing for, and what they lack."""
    yield from token_lines(statistics.tokens)
    if statistics.tokens.attention_share_ratio is not None:
        yield growth_table(statistics.tokens, n_top)
    yield from _missing_lines(statistics)
    for phase in dict.fromkeys(each.phase for each in statistics.operators):
        yield ""
        yield operator_table(statistics.operators, phase, n_top)
    if statistics.threads:
        yield ""
        yield thread_table(statistics.threads)
    if statistics.balances:
        yield ""
        yield balance_table(statistics.balances, n_top)
    if statistics.experts:
        yield ""
        yield expert_table(statistics, n_top)
    for problem in (*([f"it breaks off: {statistics.cut}"] if statistics.cut else ()), *statistics.problems):
        yield f"Not to be trusted: {problem}"


def _missing_lines(statistics: TraceStatistics) -> Iterator[str]:
    if statistics.n_events and not statistics.operators:
        yield "operators: none were recorded"
    elif statistics.operators and not statistics.threads:
        yield "threads: not told, the recorder did not see when operators began and ended on each of them"


def _faster(found: Crossover) -> str:
    if found.work is None:
        return _WINNER_WORDS[found.winner]
    where = "" if found.is_measured else ", beyond what was measured"
    return f"{found.winner.value} {found.work:.3g}{where}"


def _table(*columns: Column | str) -> Table:
    return Table(*columns, box=None, pad_edge=False)


def _right(*names: str) -> Iterator[Column]:
    return (Column(name, justify="right", no_wrap=True) for name in names)
