"""A roofline on the terminal: ceilings, points, and remarks on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from perfsuite.cli.answer import Part, Sheet, draw, fields_of
from perfsuite.expectation.memory.comparison import MemoryRecord
from perfsuite.expectation.roofline.ceiling import CPU, Ceiling, Rate, Resource
from perfsuite.expectation.roofline.point import Point, memory_roof
from perfsuite.expectation.roofline.published import published_roofs
from perfsuite.expectation.roofline.roofline_run import RooflineRun, Row, RowKind
from perfsuite.experiments.roofline.checks import agreements, all_checks, paper_findings
from perfsuite.records.chart import Chart
from perfsuite.records.outcome import Statement
from perfsuite.report.bandwidth_chart import bandwidth_chart
from perfsuite.report.memory_chart import memory_chart
from perfsuite.report.roofline_charts import devices_chart, operators_chart, sweep_chart
from perfsuite.units import format_bytes, format_bytes_per_s, format_change, format_flops_per_s, format_ns


def draw_roofline(run: RooflineRun, path: Path) -> Iterator[tuple[Path, str]]:
    """Draw every picture that the run has material for; yield each file with the picture's title.

    ``roofline.svg`` gives ``roofline-depth.svg``, ``roofline-bandwidth.svg`` and so on.
    """
    for name, chart in _charts(run):
        target = path.with_name(f"{path.stem}-{name}{path.suffix}")
        draw(chart, target)
        yield target, chart.title


def _charts(run: RooflineRun) -> Iterator[tuple[str, Chart]]:
    phases = [row for row in run.rows if row.kind is not RowKind.OPERATOR]
    for sweep in dict.fromkeys(row.sweep for row in phases):
        yield sweep, sweep_chart(run, sweep)
    if len(phases) < len(run.rows):
        yield "operators", operators_chart(run)
    if run.memory:
        yield "memory", memory_chart(run.memory)
    yield "bandwidth", bandwidth_chart(run.survey)
    yield "devices", devices_chart(run, published_roofs())


def roofline_plain(
    run: RooflineRun, benched: Sequence[Point] = (), *, earlier: RooflineRun | None = None
) -> dict[str, Any]:
    """Return the run with every derived value; points of llama-bench follow those that were measured here.

    Beside an earlier run, the points that both have follow, with their ratio and what they may differ by.
    """
    plain = {
        **fields_of(run, "suite_version", "recorded_at", "device", "engine", "n_threads"),
        "fingerprint": dict(run.fingerprint),
        "ridge_point": memory_roof(run.survey.of(run.n_threads)).ridge_point,
        "ceilings": [_ceiling(each) for each in run.survey.ceilings],
        "points": [*(_row(run, row) for row in run.rows), *(_point(each) for each in benched)],
        "memory": [_memory(record) for record in run.memory],
        "checks": [asdict(each) for each in all_checks(run)],
        "findings": [asdict(each) for each in paper_findings(run)],
    }
    if earlier is not None:
        plain["again"] = [{**asdict(each), "is_within": each.is_within} for each in agreements(earlier, run)]
    return plain


def _ceiling(ceiling: Ceiling) -> dict[str, Any]:
    rates = ("best_per_s", "median_per_s", "spread_ratio", "n_rounds")
    return {
        **fields_of(ceiling, "processor", "kind", "n_threads", "working_set_bytes", "theoretical_per_s"),
        **(fields_of(ceiling.rate, *rates) if ceiling.rate else dict.fromkeys(rates)),
        "resource": ceiling.resource.value,
        "missing": ceiling.missing or None,
        "theoretical_source": ceiling.theoretical_source or None,
    }


def _row(run: RooflineRun, row: Row) -> dict[str, Any]:
    return {
        **_point(run.point(row)),
        **fields_of(row, "sweep", "setting", "value", "spread_ratio"),
        "kind": row.kind.value,
        "role": row.role or None,
        "subject": asdict(row.subject),
        "samples_ns": list(row.samples_ns),
    }


def _memory(record: MemoryRecord) -> dict[str, Any]:
    return {
        **record.to_plain(),
        "peak_rss_bytes": record.peak.measured_bytes,
        "predicted_peak_rss_bytes": record.peak.predicted_bytes,
        "unexplained_bytes": record.peak.unexplained_bytes,
    }


def _point(point: Point) -> dict[str, Any]:
    return {
        **fields_of(point, "case", "flops", "traffic_bytes", "time_ns", "operational_intensity", "flops_per_s"),
        "least_operational_intensity": point.least_intensity,
        "most_operational_intensity": point.most_intensity,
        **fields_of(point.roof, "peak_flops_per_s", "bandwidth_bytes_per_s", "ridge_point"),
        **fields_of(point, "attainable_flops_per_s", "attainable_ratio", "mbu_ratio", "mfu_ratio"),
        "regime": point.regime.value,
        "relative_inference_potential": point.potential.decades,
        "relative_inference_potential_literal": point.potential.literal,
    }


#: Operators that are shown: those that take the most time.
_N_OPERATORS = 12

_FIGURES = ("FLOP/byte", "FLOP/s", "spread", "attainable", "MBU", "MFU", "limit", "potential")

_SAID = {True: "agrees", False: "does not agree", None: "undecided"}


def roofline_parts(run: RooflineRun, benched: Sequence[Point] = ()) -> Iterator[Part]:
    """Yield the ceilings, the points by sweep, the checks, and the paper's findings where sweeps can tell."""
    yield _ceiling_sheet(run)
    missing = (f"{each.processor} {each.kind}: {each.missing}" for each in run.survey.ceilings if each.missing)
    yield from (f"missing: {each}" for each in dict.fromkeys(missing))
    for sweep in dict.fromkeys(row.sweep for row in run.rows):
        rows = [row for row in run.rows if row.sweep == sweep]
        yield _point_sheet(run, sweep, [row for row in rows if row.kind is not RowKind.OPERATOR])
        if operators := [row for row in rows if row.kind is RowKind.OPERATOR]:
            yield _operator_sheet(run, operators)
    if run.memory:
        yield _memory_sheet(run)
    if benched:
        shown = [(point.case.removeprefix("llama-bench/"), *_figures(point, "-")) for point in benched]
        yield Sheet(("llama-bench", *_FIGURES), shown)
    yield from _check_lines(all_checks(run))
    for each in paper_findings(run):
        if not each.evidence.startswith("the sweep"):
            yield f"RooflineBench, '{each.claim}': {_SAID[each.holds]}; {each.evidence}"


def agreement_lines(earlier: RooflineRun, run: RooflineRun) -> Iterator[str]:
    """Yield how many points agree with an earlier run within the spreads that both state, and those that do not."""
    found = tuple(agreements(earlier, run))
    apart = [each for each in found if not each.is_within]
    for name in ("device", "engine", "fingerprint"):
        if getattr(earlier, name) != getattr(run, name):
            yield f"the runs differ in their {name}: {getattr(earlier, name)} and {getattr(run, name)}"
    yield f"against the run of {earlier.recorded_at}: {len(found) - len(apart)} of {len(found)} points agree"
    for each in apart:
        yield f"  {each.case}: {format_change(each.ratio)}, spread of both {each.spread_ratio:.1%}"


def _ceiling_sheet(run: RooflineRun) -> Sheet:
    own = [each for each in run.survey.ceilings if each.n_threads in (None, run.n_threads)]
    return Sheet(
        ("processor", "threads", "ceiling", "best", "usual round", "theoretical"),
        [_ceiling_cells(each, each.rate) for each in _fastest_uses(own) if each.rate is not None],
        f"Ceilings of {run.device}",
    )


def _ceiling_cells(ceiling: Ceiling, rate: Rate) -> tuple[object, ...]:
    form = format_bytes_per_s if ceiling.resource is Resource.BANDWIDTH else format_flops_per_s
    over = "" if ceiling.working_set_bytes is None else f" over {format_bytes(ceiling.working_set_bytes)}"
    return (
        ceiling.processor if ceiling.processor == CPU else f"OpenCL, {ceiling.processor}",
        *(ceiling.n_threads, f"{ceiling.kind}{over}", form(rate.best_per_s), f"{-rate.spread_ratio:+.1%}"),
        None if ceiling.theoretical_per_s is None else form(ceiling.theoretical_per_s),
    )


def _fastest_uses(ceilings: Sequence[Ceiling]) -> list[Ceiling]:
    found: dict[object, Ceiling] = {}
    for each in ceilings:
        key = (each.processor, each.working_set_bytes or each.kind)
        fastest = found.get(key)
        if each.rate and (fastest is None or not fastest.rate or each.rate.best_per_s > fastest.rate.best_per_s):
            found[key] = each
    return list(found.values())


def _point_sheet(run: RooflineRun, sweep: str, rows: Sequence[Row]) -> Sheet:
    return Sheet(
        ("setting", "of", *_FIGURES),
        [(row.setting, row.kind.value, *_figures(run.point(row), f"{row.spread_ratio:.0%}")) for row in rows],
        f"{sweep}: {rows[0].subject.weights if rows else ''}",
    )


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


def _operator_sheet(run: RooflineRun, rows: Sequence[Row]) -> Sheet:
    slowest = sorted(rows, key=lambda row: row.time_ns, reverse=True)[:_N_OPERATORS]
    return Sheet(
        ("operator", "time", "FLOP/byte", "FLOP/s", "attainable", "limit"),
        [
            (
                *(row.role, format_ns(row.time_ns), f"{point.operational_intensity:.3g}"),
                *(format_flops_per_s(point.flops_per_s), f"{point.attainable_ratio:.0%}", point.regime.value),
            )
            for row, point in ((row, run.point(row)) for row in slowest)
        ],
        f"operators: the {_N_OPERATORS} of {len(rows)} that take the most time in one evaluation",
    )


def _memory_sheet(run: RooflineRun) -> Sheet:
    own = ("peak RSS", "predicted", "base", "weights", "KV", "buffers", "unexplained", "VRAM")
    rows = []
    for record in run.memory:
        need = record.need
        figures_bytes = (
            *(record.peak.measured_bytes, record.peak.predicted_bytes, record.timeline.base.rss_bytes),
            *(need.weights_bytes, need.kv_bytes, need.buffers_bytes),
            *(record.peak.unexplained_bytes, record.vram_bytes),
        )
        rows.append((record.weights, record.scenario, *map(format_bytes, figures_bytes)))
    return Sheet(("weights", "scenario", *own), rows, "Memory")


def _check_lines(checks: Sequence[Statement]) -> Iterator[str]:
    told = [check for check in checks if check.holds is not None]
    failed = [check for check in told if not check.holds]
    yield f"checks: {len(told) - len(failed)} of {len(told)} hold"
    for check in failed:
        yield f"  {check.name}: not so: {check.claim}; {check.evidence}"
