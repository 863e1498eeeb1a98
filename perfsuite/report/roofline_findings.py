"""What the points of a roofline show, in a sentence computed from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from perfsuite.expectation.roofline.point import Point, Regime, nearest
from perfsuite.expectation.roofline.roofline_run import RooflineRun, Row, RowKind
from perfsuite.units import format_count, format_flops_per_s

KIND_WORDS: Mapping[RowKind, str] = MappingProxyType(
    {
        RowKind.PREFILL: "prefill",
        RowKind.DECODE: "decode only",
        RowKind.WHOLE_RUN: "whole run",
        RowKind.OPERATOR: "operator",
    }
)
_SUBJECTS = {RowKind.PREFILL: "prefill", RowKind.DECODE: "decode", RowKind.WHOLE_RUN: "a whole run"}
_LIMITS = {Regime.MEMORY: "memory", Regime.COMPUTE: "arithmetic"}


def _attained(run: RooflineRun, rows: Sequence[Row]) -> str:
    """Tell for each kind which share of its roof its points reach: ``decode runs at 27 % of what memory allows``."""
    said = [
        f"{_SUBJECTS[kind]} runs at {_percents(points)} of what {_limit(points)} allows"
        for kind in _SUBJECTS
        if (points := [run.point(row) for row in rows if row.kind is kind])
    ]
    return ", ".join(said[:2])


def sweep_finding(sweep: str, run: RooflineRun, rows: Sequence[Row]) -> str:
    """Return what a sweep shows; one that has no sentence of its own tells which shares are reached."""
    told = (_FINDINGS[sweep](run, rows) if sweep in _FINDINGS else "") or _attained(run, rows)
    return told[:1].upper() + told[1:]


def operators_finding(run: RooflineRun, rows: Sequence[Row]) -> str:
    """Tell which operator takes the most time, and where it stands."""
    longest = max(rows, key=whole_run_ns)
    share = whole_run_ns(longest) / sum(map(whole_run_ns, rows))
    point = run.point(longest)
    return (
        f"{_named(longest)} takes {_percent(share)} of the time in operators, at {_percent(point.attainable_ratio)} of "
        f"what {_LIMITS[point.regime]} allows"
    )


def conditions(run: RooflineRun) -> str:
    """Tell the device, its threads, the engine and the day of a run."""
    threads = format_count(run.n_threads, "thread")
    return f"{run.device}, {threads}, {run.engine}, {run.recorded_at.partition('T')[0]}"


def whole_run_ns(row: Row) -> float:
    """Return what an operator takes in a whole run: that of a step once for every token generated."""
    return row.time_ns * (row.subject.n_gen if row.role.startswith("decode/") else 1)


def _scenario(run: RooflineRun, rows: Sequence[Row]) -> str:
    said = []
    for regime, words in _LIMITS.items():
        within = [row for row in rows if row.kind is RowKind.WHOLE_RUN and run.point(row).regime is regime]
        if within:
            chosen = within[nearest([run.point(row).potential for row in within])]
            name = chosen.setting.upper()
            many = f"{name} is nearest to the ridge of the {len(within)} that {words} limits"
            said.append(many if len(within) > 1 else f"{words} limits {name} only")
    return f"Of whole runs: {'; '.join(said)}" if said else ""


def _depth(run: RooflineRun, rows: Sequence[Row]) -> str:
    said = []
    for kind in (RowKind.DECODE, RowKind.PREFILL):
        found = sorted((row for row in rows if row.kind is kind), key=lambda row: row.value or 0.0)
        if len(found) > 1:
            first, last = found[0], found[-1]
            rates = [format_flops_per_s(run.point(row).flops_per_s) for row in (first, last)]
            said.append(f"{_SUBJECTS[kind]} goes from {rates[0]} to {rates[1]}{_if_within_spread(run, first, last)}")
            span = f"From {first.setting} to {last.setting} layers"
    return f"{span} {', '.join(said)}" if said else ""


def _length(run: RooflineRun, rows: Sequence[Row]) -> str:
    found = sorted((row for row in rows if row.kind is RowKind.PREFILL), key=lambda row: row.value or 0.0)
    limited = [row for row in found if run.point(row).regime is Regime.COMPUTE]
    if not limited:
        return ""
    return f"From {limited[0].setting} tokens arithmetic limits prefill; {_attained(run, rows)}"


def _precision(run: RooflineRun, rows: Sequence[Row]) -> str:
    found = [row for row in rows if row.kind is RowKind.DECODE]
    said = [f"{run.point(row).operational_intensity:.2f} with {row.setting.upper()}" for row in found]
    return f"Decode's operational intensity in FLOP/byte is {', '.join(said)}" if said else ""


def _attention(run: RooflineRun, rows: Sequence[Row]) -> str:
    found = sorted((r for r in rows if r.kind is RowKind.DECODE), key=lambda row: run.point(row).flops_per_s)
    if len(found) < 2:
        return ""
    least, most = found[0], found[-1]
    rates = [format_flops_per_s(run.point(row).flops_per_s) for row in (most, least)]
    return (
        f"Decode has the highest rate with {most.setting.upper()} ({rates[0]}) and the lowest with "
        f"{least.setting.upper()} ({rates[1]}){_if_within_spread(run, least, most)}"
    )


def _slowest_step(noun: str) -> Callable[[RooflineRun, Sequence[Row]], str]:
    def tell(run: RooflineRun, rows: Sequence[Row]) -> str:
        found = sorted((row for row in rows if row.kind is RowKind.DECODE), key=lambda row: row.time_ns)
        if len(found) < 2:
            return ""
        quick, slow = found[0], found[-1]
        ratio = slow.time_ns / quick.time_ns
        beyond = _if_within_spread(run, quick, slow)
        return f"A token takes {ratio:.2f} times as long with {noun} {slow.setting} as with {quick.setting}{beyond}"

    return tell


def _threads(run: RooflineRun, rows: Sequence[Row]) -> str:
    said = []
    for kind in (RowKind.PREFILL, RowKind.DECODE):
        found = sorted((row for row in rows if row.kind is kind), key=lambda row: row.subject.n_threads)
        if len(found) > 1:
            few, many = found[0], found[-1]
            beyond = _if_within_spread(run, few, many)
            said.append(f"{_SUBJECTS[kind]} is {few.time_ns / many.time_ns:.2f} times as fast{beyond}")
            counts = f"With {many.setting} threads instead of {few.setting}"
    return f"{counts} {', '.join(said)}" if said else ""


def _moe(run: RooflineRun, rows: Sequence[Row]) -> str:
    found = [row for row in rows if row.kind is RowKind.PREFILL]
    if not found:
        return ""
    widest = max(found, key=lambda row: _openness(run.point(row)))
    return (
        f"Routing leaves prefill's operational intensity open by up to {_openness(run.point(widest)):.2f} times "
        f"({widest.subject.architecture}, {widest.subject.n_prompt} tokens)"
    )


def _named(row: Row) -> str:
    phase, _, role = row.role.partition("/")
    return f"{role} of {phase}"


def _openness(point: Point) -> float:
    return point.most_intensity / point.least_intensity


def _if_within_spread(run: RooflineRun, one: Row, other: Row) -> str:
    """Say so where two rates are closer together than the samples of each."""
    low, high = sorted(run.point(row).flops_per_s for row in (one, other))
    return " (within the spread)" if high / low - 1.0 <= one.spread_ratio + other.spread_ratio else ""


def _limit(points: Sequence[Point]) -> str:
    regimes = {point.regime for point in points}
    return _LIMITS[regimes.pop()] if len(regimes) == 1 else "the roof"


def _percents(points: Sequence[Point]) -> str:
    shares = [point.attainable_ratio for point in points]
    least, most = (f"{100.0 * share:.0f}" for share in (min(shares), max(shares)))
    return f"{least} %" if least == most else f"{least} to {most} %"


def _percent(ratio: float) -> str:
    return f"{100.0 * ratio:.0f} %"


_FINDINGS: Mapping[str, Callable[[RooflineRun, Sequence[Row]], str]] = MappingProxyType(
    {
        "scenario": _scenario,
        "length": _length,
        "depth": _depth,
        "precision": _precision,
        "moe": _moe,
        "attention": _attention,
        "kv": _slowest_step("a KV cache of"),
        "flash": _slowest_step("flash attention"),
        "threads": _threads,
    }
)
