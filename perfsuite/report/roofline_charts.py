"""The roofline pictures of a run: its sweeps, its operators, the device among others, and what they show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.point import Point, Regime, Roof, memory_roof, nearest
from perfsuite.expectation.roofline.roofline_run import RooflineRun, Row, RowKind
from perfsuite.expectation.roofline.sweeps import BASE
from perfsuite.records.chart import Axis, Line, LineRole, PointGroup, Scale, XYChart, XYPanel
from perfsuite.report.roofline_roofs import (
    Frame,
    arithmetic_roofs,
    frame_of,
    potential_region,
    ridge_words,
    roof_above,
    roof_line,
    side_roofs,
)
from perfsuite.units import format_bytes_per_s, format_count, format_flops_per_s, to_giga_per_s

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


def _ends(rows: Sequence[Row], kind: RowKind, order: Callable[[Row], float]) -> tuple[Row, Row] | None:
    """Return the first and the last of the rows of a kind; None of fewer than two."""
    found = sorted((row for row in rows if row.kind is kind), key=order)
    return (found[0], found[-1]) if len(found) > 1 else None


def _depth(run: RooflineRun, rows: Sequence[Row]) -> str:
    said = []
    for kind in (RowKind.DECODE, RowKind.PREFILL):
        if ends := _ends(rows, kind, lambda row: row.value or 0.0):
            first, last = ends
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
    ends = _ends(rows, RowKind.DECODE, lambda row: run.point(row).flops_per_s)
    if ends is None:
        return ""
    least, most = ends
    rates = [format_flops_per_s(run.point(row).flops_per_s) for row in (most, least)]
    return (
        f"Decode has the highest rate with {most.setting.upper()} ({rates[0]}) and the lowest with "
        f"{least.setting.upper()} ({rates[1]}){_if_within_spread(run, least, most)}"
    )


def _slowest_step(noun: str) -> Callable[[RooflineRun, Sequence[Row]], str]:
    def tell(run: RooflineRun, rows: Sequence[Row]) -> str:
        ends = _ends(rows, RowKind.DECODE, lambda row: row.time_ns)
        if ends is None:
            return ""
        quick, slow = ends
        ratio = slow.time_ns / quick.time_ns
        beyond = _if_within_spread(run, quick, slow)
        return f"A token takes {ratio:.2f} times as long with {noun} {slow.setting} as with {quick.setting}{beyond}"

    return tell


def _threads(run: RooflineRun, rows: Sequence[Row]) -> str:
    said = []
    for kind in (RowKind.PREFILL, RowKind.DECODE):
        if ends := _ends(rows, kind, lambda row: row.subject.n_threads):
            few, many = ends
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


#: The kinds of row that are not operators.
PHASES = (RowKind.PREFILL, RowKind.DECODE, RowKind.WHOLE_RUN)

#: The sweeps whose settings are numbers, and of what: the least and the largest are written at their points.
_COUNTED: Mapping[str, str] = MappingProxyType({"depth": "layers", "length": "tokens"})

#: The sweep whose prefills are joined over prompts, one line for each architecture.
_ROUTED = "moe"


class _Series(NamedTuple):
    """Rows of one label and kind, in order of their values."""

    label: str
    kind: str
    rows: tuple[Row, ...]
    texts: tuple[str, ...] = ()

    def group(self, run: RooflineRun) -> PointGroup:
        """Return the points."""
        x, y = zip(*(_place(run.point(row)) for row in self.rows), strict=True)
        return PointGroup(label=self.label, kind=self.kind, x=x, y=y, texts=self.texts)

    def lines(self, run: RooflineRun) -> Iterator[Line]:
        """Yield what joins points over a number or over prompts, and intensities that routing leaves open."""
        points = [run.point(row) for row in self.rows]
        first = self.rows[0]
        if first.sweep in _COUNTED or (first.sweep, first.kind) == (_ROUTED, RowKind.PREFILL):
            x, y = zip(*map(_place, points), strict=True)
            yield Line(label="", x=x, y=y, role=LineRole.FAINT)
        for point in points:
            if point.least_intensity < point.most_intensity:
                y = (to_giga_per_s(point.flops_per_s),) * 2
                yield Line(label="", x=(point.least_intensity, point.most_intensity), y=y, role=LineRole.FAINT)


def _place(point: Point) -> tuple[float, float]:
    return point.operational_intensity, to_giga_per_s(point.flops_per_s)


def _series(rows: Sequence[Row], label: str | None = None) -> Iterator[_Series]:
    """Yield rows by label and kind; settings that are numbers are written at the ends."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((_label(row) if label is None else label, KIND_WORDS[row.kind]), []).append(row)
    for (name, kind), members in found.items():
        ordered = tuple(sorted(members, key=lambda row: row.value or 0.0))
        counted = _COUNTED.get(ordered[0].sweep)
        if counted is None or label is not None:
            yield _Series(name, kind, ordered)
        else:
            ends = {ordered[0], ordered[-1]}
            yield _Series(kind, "", ordered, tuple(f"{e.value or 0:g} {counted}" if e in ends else "" for e in ordered))


def _label(row: Row) -> str:
    words = {
        **dict.fromkeys(_COUNTED, ""),
        _ROUTED: row.subject.architecture,
        "kv": f"KV cache of {row.setting}",
        "flash": f"flash attention {row.setting}",
        "threads": format_count(row.subject.n_threads, "thread"),
    }
    return words.get(row.sweep, row.setting)


def devices_chart(run: RooflineRun | None, published: Sequence[tuple[str, Roof]]) -> XYChart:
    """Return the classical roof of a measured device with its points, beside published ones, given by name.

    The arithmetic that the points have is shown as well, where it is not FP32.
    """
    roofs, faster = [*published], list[tuple[str, Roof]]()
    points, groups, notes = list[Point](), tuple[PointGroup, ...](), list[str]()
    if run is not None:
        rows, ceilings = _shown(run), run.survey.of(run.n_threads)
        name, own = f"{run.device}, {format_count(run.n_threads, 'thread')}", memory_roof(ceilings)
        roofs, points = [(name, own), *roofs], [run.point(row) for row in rows]
        kind, roof = roof_above(arithmetic_roofs(ceilings), points) if points else ("", own)
        if roof != own:
            faster = [(f"{name}, {kind}, {format_flops_per_s(roof.peak_flops_per_s)}", roof)]
        groups = tuple(series.group(run) for series in _series(rows, f"{name}, {ridge_words(own)}"))
        notes = [conditions(run)]
    frame = frame_of(points, [roof for _, roof in (*roofs, *faster)])
    lines = [roof_line(f"{name}, {ridge_words(roof)}", roof, frame) for name, roof in roofs]
    lines += [roof_line(label, roof, frame, LineRole.FAINT) for label, roof in faster]
    notes += ["roofs without points as published"] if published else []
    return _framed(frame, title=_ridges_finding(roofs), note="; ".join(notes), lines=tuple(lines), groups=groups)


def _framed(frame: Frame, *, title: str, note: str, lines: tuple[Line, ...], groups: tuple[PointGroup, ...]) -> XYChart:
    least_y, most_y = map(to_giga_per_s, (frame.least_y, frame.most_y))
    panel = XYPanel(
        x_axis=Axis(
            label="operational intensity (FLOP/byte)", scale=Scale.LOG10, least=frame.least_x, most=frame.most_x
        ),
        y_axis=Axis(label="rate (GFLOP/s)", scale=Scale.LOG10, least=least_y, most=most_y),
        lines=lines,
        groups=groups,
    )
    return XYChart(title=title, note=note, panels=(panel,))


def _ridges_finding(roofs: Sequence[tuple[str, Roof]]) -> str:
    (least, low), *_, (most, high) = sorted((*roofs, roofs[0]), key=lambda each: each[1].ridge_point)
    if least == most:
        return f"{least}: the ridge lies at {low.ridge_point:.2f} FLOP/byte"
    return f"Ridges lie between {low.ridge_point:.2f} FLOP/byte ({least}) and {high.ridge_point:.2f} ({most})"


def _shown(run: RooflineRun) -> tuple[Row, ...]:
    """Return the phases of what no sweep varies, else those of the scenarios, else all."""
    phases = tuple(row for row in run.rows if row.kind in PHASES and row.subject.n_threads == run.n_threads)
    by_sweep = (tuple(row for row in phases if row.sweep == sweep) for sweep in (BASE, "scenario"))
    return next(filter(None, by_sweep), phases)


#: How many operators are named in the picture.
_N_NAMED = 10


def sweep_chart(run: RooflineRun, sweep: str) -> XYChart:
    """Return the phases of a sweep under the roofs of the run's number of threads.

    Of depth and length each kind is a line with its ends named; of other sweeps each setting has its mark and each kind
    its filling. Routed experts are joined over prompts, with the ranges of their intensities. Raises PerfsuiteError
    where the run has no such rows.
    """
    rows = [row for row in run.rows if row.sweep == sweep and row.kind in PHASES]
    if not rows:
        seen = ", ".join(dict.fromkeys(row.sweep for row in run.rows)) or "none"
        raise PerfsuiteError(f"roofline: sweep is {sweep!r}, this run has {seen}")
    return _chart(run, rows, list(_series(rows)), title=sweep_finding(sweep, run, rows))


def operators_chart(run: RooflineRun) -> XYChart:
    """Return the operators of the first workload that has them; the ten that take the most time are named.

    Raises PerfsuiteError where the run has no operators.
    """
    found = [row for row in run.rows if row.kind is RowKind.OPERATOR]
    if not found:
        raise PerfsuiteError("roofline: the run has no operators; record them, or draw a sweep")
    rows = [row for row in found if (row.sweep, row.subject) == (found[0].sweep, found[0].subject)]
    named = sorted(rows, key=whole_run_ns, reverse=True)[:_N_NAMED]
    series = []
    for phase in dict.fromkeys(row.role.partition("/")[0] for row in rows):
        of_phase = tuple(row for row in rows if row.role.partition("/")[0] == phase)
        texts = tuple(row.role.partition("/")[2] if row in named else "" for row in of_phase)
        series.append(_Series(phase, "", of_phase, texts))
    told = f"of {found[0].subject.weights}, {found[0].subject.scenario}: activations count as traffic"
    return _chart(run, rows, series, title=operators_finding(run, rows), told=told)


def _chart(run: RooflineRun, rows: Sequence[Row], series: Sequence[_Series], *, title: str, told: str = "") -> XYChart:
    """Put points under the roofs of the run, over the region that their fastest arithmetic has."""
    ceilings = run.survey.of(run.n_threads)
    classical, points = memory_roof(ceilings), [run.point(row) for row in rows]
    arithmetic = arithmetic_roofs(ceilings)
    frame = frame_of(points, [roof for _, roof in arithmetic])
    name, region_roof = roof_above(arithmetic, points)
    lines = (
        *potential_region(region_roof, frame),
        roof_line("FP32 over memory", classical, frame),
        *side_roofs(ceilings, frame),
        *_other_threads(run, rows, frame),
        *(line for each in series for line in each.lines(run)),
    )
    groups = (_ridges(dict.fromkeys((classical, region_roof))), *(each.group(run) for each in series))
    note = "; ".join(filter(None, (told, conditions(run), _roof_note(classical, name))))
    return _framed(frame, title=title, note=note, lines=lines, groups=groups)


def _ridges(roofs: Mapping[Roof, None]) -> PointGroup:
    return PointGroup(
        label="ridge",
        x=tuple(roof.ridge_point for roof in roofs),
        y=tuple(to_giga_per_s(roof.peak_flops_per_s) for roof in roofs),
        texts=tuple(map(ridge_words, roofs)),
    )


def _other_threads(run: RooflineRun, rows: Sequence[Row], frame: Frame) -> Iterator[Line]:
    for n_threads in sorted({row.subject.n_threads for row in rows} - {run.n_threads}):
        points = [run.point(row) for row in rows if row.subject.n_threads == n_threads]
        name, roof = roof_above(arithmetic_roofs(run.survey.of(n_threads)), points)
        peak = format_flops_per_s(roof.peak_flops_per_s)
        yield roof_line(f"{name}, {format_count(n_threads, 'thread')}, {peak}", roof, frame, LineRole.FAINT)


def _roof_note(roof: Roof, name: str) -> str:
    rates = (
        f"{format_flops_per_s(roof.peak_flops_per_s)} over memory at {format_bytes_per_s(roof.bandwidth_bytes_per_s)}"
    )
    return (
        f"FP32 {rates}; shaded is the inference potential below {name}, by decades from its ridge; shares are of "
        "each point's own roof"
    )
