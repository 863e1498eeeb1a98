"""The roofline pictures of a run: its sweeps, its operators, and the device among others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.ceiling import CPU
from perfsuite.expectation.roofline.roof import Roof
from perfsuite.expectation.roofline.roofline_run import RooflineRun, Row, RowKind
from perfsuite.records.chart import (
    Axis,
    PointGroup,
    RoofLine,
    RooflineChart,
    RooflinePanel,
    RoofRole,
    Scale,
)
from perfsuite.report.roofline_findings import conditions, operators_finding, sweep_finding, whole_run_ns
from perfsuite.report.roofline_points import PHASES, SHADES, place_of, point_group, sweep_groups
from perfsuite.report.roofline_roofs import (
    Frame,
    arithmetic_roofs,
    frame_of,
    potential_region,
    ridge,
    roof_above,
    roof_line,
    side_roofs,
)
from perfsuite.units import (
    format_bytes_per_s,
    format_count,
    format_flops_per_s,
)

#: How many operators are named in the picture.
_N_NAMED = 10


def sweep_chart(run: RooflineRun, sweep: str, kinds: Sequence[RowKind] = PHASES) -> RooflineChart:
    """Return the points of a sweep under the roofs of the run's number of threads.

    Depth and length are colours and each kind has its mark; of other sweeps each setting has its mark and each kind its
    filling. Routed experts are joined over prompts, with the ranges of their intensities. Raises PerfsuiteError where
    the run has no such rows.
    """
    rows = [row for row in run.rows if row.sweep == sweep and row.kind in kinds]
    if not rows:
        seen = ", ".join(dict.fromkeys(row.sweep for row in run.rows)) or "none"
        raise PerfsuiteError(f"roofline: sweep is {sweep!r}, this run has {seen}")
    chart = _chart(run, rows, tuple(sweep_groups(run, sweep, rows)), title=sweep_finding(sweep, run, rows))
    shade = SHADES.get(sweep)
    return chart if shade is None else replace(chart, shade_axis=Axis(label=shade, scale=Scale.LOG10))


def operators_chart(run: RooflineRun) -> RooflineChart:
    """Return the operators of the first workload that has them; the ten that take the most time are named.

    Raises PerfsuiteError where the run has no operators.
    """
    found = [row for row in run.rows if row.kind is RowKind.OPERATOR]
    if not found:
        raise PerfsuiteError("roofline: the run has no operators; record them, or draw a sweep")
    rows = [row for row in found if (row.sweep, row.subject) == (found[0].sweep, found[0].subject)]
    named = sorted(rows, key=whole_run_ns, reverse=True)[:_N_NAMED]
    groups = []
    for phase in dict.fromkeys(row.role.partition("/")[0] for row in rows):
        of_phase = [row for row in rows if row.role.partition("/")[0] == phase]
        texts = tuple(row.role.partition("/")[2] if row in named else "" for row in of_phase)
        groups.append(point_group(phase, phase, of_phase, run, texts=texts))
    told = f"of {found[0].subject.weights}, {found[0].subject.scenario}: activations count as traffic"
    return _chart(run, rows, tuple(groups), title=operators_finding(run, rows), told=told)


def _chart(
    run: RooflineRun, rows: Sequence[Row], groups: tuple[PointGroup, ...], *, title: str, told: str = ""
) -> RooflineChart:
    """Put groups of points under the roofs of the run, over the region that their fastest arithmetic has."""
    ceilings = run.survey.of(CPU, run.n_threads)
    points = [run.point(row) for row in rows]
    arithmetic = arithmetic_roofs(ceilings)
    frame = frame_of(map(place_of, points), [roof for _, roof in arithmetic])
    name, region_roof = roof_above(arithmetic, points)
    ridges = dict.fromkeys((ceilings.memory_roof, region_roof))
    panel = RooflinePanel(
        title="",
        roofs=(
            roof_line("FP32 over memory", ceilings.memory_roof, frame, role=RoofRole.MAIN),
            *side_roofs(ceilings, frame),
            *_other_threads(run, rows, frame),
        ),
        ridges=tuple(map(ridge, ridges)),
        region=potential_region(region_roof, frame),
        groups=groups,
    )
    return RooflineChart(
        title=title,
        note="; ".join(filter(None, (told, conditions(run), _roof_note(ceilings.memory_roof, name)))),
        n_columns=1,
        x_axis=frame.x_axis,
        y_axis=frame.y_axis,
        shade_axis=None,
        panels=(panel,),
    )


def _other_threads(run: RooflineRun, rows: Sequence[Row], frame: Frame) -> Iterator[RoofLine]:
    for n_threads in sorted({row.subject.n_threads for row in rows} - {run.n_threads}):
        points = [run.point(row) for row in rows if row.subject.n_threads == n_threads]
        name, roof = roof_above(arithmetic_roofs(run.survey.of(CPU, n_threads)), points)
        peak = format_flops_per_s(roof.peak_flops_per_s)
        yield roof_line(f"{name}, {format_count(n_threads, 'thread')}, {peak}", roof, frame, role=RoofRole.SIDE)


def _roof_note(roof: Roof, name: str) -> str:
    rates = (
        f"{format_flops_per_s(roof.peak_flops_per_s)} over memory at {format_bytes_per_s(roof.bandwidth_bytes_per_s)}"
    )
    return (
        f"FP32 {rates}; shaded is the inference potential below {name}, by decades from its ridge; shares are of "
        "each point's own roof"
    )
