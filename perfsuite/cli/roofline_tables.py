"""A roofline on the terminal: ceilings, points, and what is to be said of them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Column, Table

from perfsuite.cli.commands import show
from perfsuite.expectation.roofline.ceiling import CPU, Ceiling, Resource
from perfsuite.expectation.roofline.point import Point
from perfsuite.expectation.roofline.roofline_run import RooflineRun, Row, RowKind
from perfsuite.units import format_bytes, format_bytes_per_s, format_change, format_flops_per_s, format_ns
from perfsuite.verdict.roofline.agreement import agreements
from perfsuite.verdict.roofline.checks import all_checks
from perfsuite.verdict.roofline.paper_findings import paper_findings
from perfsuite.verdict.roofline.statement import Statement

#: Operators that are shown: those that take the most time.
_N_OPERATORS = 12

_SAID = {True: "agrees", False: "does not agree", None: "undecided"}


def show_roofline(run: RooflineRun, benched: Sequence[Point] = ()) -> None:
    """Print the ceilings, the points by sweep, the checks, and the paper's findings where sweeps can tell."""
    show(_ceiling_table(run))
    for missing in dict.fromkeys(f"{each.processor} {each.kind}: {each.missing}" for each in _missing(run)):
        print(f"missing: {missing}")
    for sweep in dict.fromkeys(row.sweep for row in run.rows):
        rows = [row for row in run.rows if row.sweep == sweep]
        show(_point_table(run, sweep, [row for row in rows if row.kind is not RowKind.OPERATOR]))
        if operators := [row for row in rows if row.kind is RowKind.OPERATOR]:
            show(_operator_table(run, operators))
    if run.memory:
        show(_memory_table(run))
    if benched:
        show(_bench_table(benched))
    _say_checks(all_checks(run))
    for each in paper_findings(run):
        if not each.evidence.startswith("the sweep"):
            print(f"RooflineBench, '{each.claim}': {_SAID[each.holds]}; {each.evidence}")


def show_agreement(earlier: RooflineRun, run: RooflineRun) -> None:
    """Print how many points agree with an earlier run within the spreads that both state, and those that do not."""
    found = tuple(agreements(earlier, run))
    apart = [each for each in found if not each.is_within]
    for name in ("device", "engine", "fingerprint"):
        if getattr(earlier, name) != getattr(run, name):
            print(f"the runs differ in their {name}: {getattr(earlier, name)} and {getattr(run, name)}")
    print(f"against the run of {earlier.recorded_at}: {len(found) - len(apart)} of {len(found)} points agree")
    for each in apart:
        print(f"  {each.case}: {format_change(each.ratio)}, spread of both {each.spread_ratio:.1%}")


def _missing(run: RooflineRun) -> list[Ceiling]:
    return [each for each in run.survey.ceilings if each.missing]


def _ceiling_table(run: RooflineRun) -> Table:
    """Show arithmetic and the fastest use of each working set, with the run's own threads; JSON has the rest."""
    table = Table(
        *("processor", "threads", "ceiling", "best", "usual round", "theoretical"),
        title=escape(f"Ceilings of {run.device}"),
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    own = [each for each in run.survey.ceilings if each.n_threads in (None, run.n_threads)]
    for each in _fastest_uses(own):
        assert each.rate is not None
        form = format_bytes_per_s if each.resource is Resource.BANDWIDTH else format_flops_per_s
        over = "" if each.working_set_bytes is None else f" over {format_bytes(each.working_set_bytes)}"
        table.add_row(
            each.processor if each.processor == CPU else escape(f"OpenCL, {each.processor}"),
            "-" if each.n_threads is None else str(each.n_threads),
            f"{each.kind}{over}",
            form(each.rate.best_per_s),
            f"{-each.rate.spread_ratio:+.1%}",
            "-" if each.theoretical_per_s is None else form(each.theoretical_per_s),
        )
    return table


def _fastest_uses(ceilings: Sequence[Ceiling]) -> list[Ceiling]:
    """Return the measured ceilings, of each working set the fastest use only, on which roofs rest."""
    found: dict[object, Ceiling] = {}
    for each in ceilings:
        key = (each.processor, each.working_set_bytes or each.kind)
        fastest = found.get(key)
        if each.rate and (fastest is None or not fastest.rate or each.rate.best_per_s > fastest.rate.best_per_s):
            found[key] = each
    return list(found.values())


def _point_table(run: RooflineRun, sweep: str, rows: Sequence[Row]) -> Table:
    first = rows[0].subject if rows else None
    table = Table(
        *("setting", "of", "FLOP/byte", "FLOP/s", "spread", "attainable", "MBU", "MFU", "limit", "potential"),
        title=escape(f"{sweep}: {first.weights if first else ''}"),
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    for row in rows:
        table.add_row(escape(row.setting), row.kind.value, *_figures(run.point(row), f"{row.spread_ratio:.0%}"))
    return table


def _figures(point: Point, spread: str) -> tuple[str, ...]:
    intensity = f"{point.operational_intensity:.3g}"
    if point.least_intensity != point.most_intensity:
        intensity += f" ({point.least_intensity:.3g} to {point.most_intensity:.3g})"
    return (
        intensity,
        format_flops_per_s(point.flops_per_s),
        spread,
        f"{point.attainable_ratio:.0%}",
        f"{point.mbu_ratio:.0%}",
        f"{point.mfu_ratio:.0%}",
        point.regime.value,
        f"{point.potential.decades:.2f}",
    )


def _operator_table(run: RooflineRun, rows: Sequence[Row]) -> Table:
    table = Table(
        *("operator", "time", "FLOP/byte", "FLOP/s", "attainable", "limit"),
        title=f"operators: the {_N_OPERATORS} of {len(rows)} that take the most time in one evaluation",
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    for row in sorted(rows, key=lambda row: row.time_ns, reverse=True)[:_N_OPERATORS]:
        point = run.point(row)
        table.add_row(
            escape(row.role),
            format_ns(row.time_ns),
            f"{point.operational_intensity:.3g}",
            format_flops_per_s(point.flops_per_s),
            f"{point.attainable_ratio:.0%}",
            point.regime.value,
        )
    return table


def _memory_table(run: RooflineRun) -> Table:
    columns = (
        "weights",
        "scenario",
        "peak RSS",
        "predicted",
        "base",
        "weights",
        "KV",
        "buffers",
        "unexplained",
        "VRAM",
    )
    table = Table(*columns, title="Memory", title_justify="left", box=None, pad_edge=False)
    for record in run.memory:
        need = record.need
        buffers_bytes = need.compute_touched_bytes + need.output_bytes + need.work_bytes
        table.add_row(
            escape(record.weights),
            escape(record.scenario),
            format_bytes(record.peak.measured_bytes),
            format_bytes(record.peak.predicted_bytes),
            format_bytes(record.timeline.base.rss_bytes),
            format_bytes(need.weights_bytes),
            format_bytes(need.kv_bytes),
            format_bytes(buffers_bytes),
            format_bytes(record.peak.unexplained_bytes),
            format_bytes(record.vram_bytes),
        )
    return table


def _bench_table(points: Sequence[Point]) -> Table:
    table = Table(
        Column("llama-bench", no_wrap=True),
        *("FLOP/byte", "FLOP/s", "spread", "attainable", "MBU", "MFU", "limit", "potential"),
        box=None,
        pad_edge=False,
    )
    for point in points:
        table.add_row(escape(point.case.removeprefix("llama-bench/")), *_figures(point, "-"))
    return table


def _say_checks(checks: Sequence[Statement]) -> None:
    """Say how many checks hold, and each that does not."""
    told = [check for check in checks if check.holds is not None]
    failed = [check for check in told if not check.holds]
    print(f"checks: {len(told) - len(failed)} of {len(told)} hold")
    for check in failed:
        print(f"  {check.name}: not so: {check.claim}; {check.evidence}")
