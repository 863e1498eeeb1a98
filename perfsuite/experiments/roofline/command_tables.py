"""A roofline on the terminal: ceilings, points, and what is to be said of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfsuite.cli.answer import Part, Sheet
from perfsuite.expectation.roofline.ceiling import CPU, Ceiling, Rate, Resource
from perfsuite.expectation.roofline.point import Point
from perfsuite.expectation.roofline.roofline_run import RooflineRun, Row, RowKind
from perfsuite.experiments.roofline.agreement import agreements
from perfsuite.experiments.roofline.checks import all_checks
from perfsuite.experiments.roofline.paper_findings import paper_findings
from perfsuite.units import format_bytes, format_bytes_per_s, format_change, format_flops_per_s, format_ns
from perfsuite.verdict.statement import Statement

#: Operators that are shown: those that take the most time.
_N_OPERATORS = 12

#: What a point has, of ours or of llama-bench.
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
        yield Sheet(("<llama-bench", *_FIGURES), shown)
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
    """Show arithmetic and the fastest use of each working set, with the run's own threads; JSON has the rest."""
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
    """Return the measured ceilings, of each working set the fastest use only, on which roofs rest."""
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
            *(need.weights_bytes, need.kv_bytes, need.compute_touched_bytes + need.output_bytes + need.work_bytes),
            *(record.peak.unexplained_bytes, record.vram_bytes),
        )
        rows.append((record.weights, record.scenario, *map(format_bytes, figures_bytes)))
    return Sheet(("weights", "scenario", *own), rows, "Memory")


def _check_lines(checks: Sequence[Statement]) -> Iterator[str]:
    """Yield how many checks hold, and each that does not."""
    told = [check for check in checks if check.holds is not None]
    failed = [check for check in told if not check.holds]
    yield f"checks: {len(told) - len(failed)} of {len(told)} hold"
    for check in failed:
        yield f"  {check.name}: not so: {check.claim}; {check.evidence}"
