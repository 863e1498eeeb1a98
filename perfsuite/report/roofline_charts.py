"""The roofline pictures of a run: its sweeps, its operators, and the device among others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.ceiling import CPU
from perfsuite.expectation.roofline.point import Point
from perfsuite.expectation.roofline.roofline_run import RooflineRun, Row, RowKind
from perfsuite.expectation.roofline.survey import Roof
from perfsuite.expectation.roofline.sweeps import BASE
from perfsuite.records.chart import Axis, PointGroup, RoofLine, RooflineChart, RooflinePanel, RoofRole, Scale
from perfsuite.report.roofline_findings import KIND_WORDS, conditions, operators_finding, sweep_finding, whole_run_ns
from perfsuite.report.roofline_roofs import (
    Frame,
    arithmetic_roofs,
    frame_of,
    potential_region,
    ridge,
    ridge_words,
    roof_above,
    roof_line,
    side_roofs,
)
from perfsuite.units import format_bytes_per_s, format_count, format_flops_per_s, to_giga_per_s

#: The kinds of row that are not operators.
PHASES = (RowKind.PREFILL, RowKind.DECODE, RowKind.WHOLE_RUN)

#: The sweeps whose settings are a scale of colours, and what it tells.
SHADES: Mapping[str, str] = MappingProxyType({"depth": "layers", "length": "tokens of the prompt"})

#: The sweep whose prefills are joined over prompts, one line for each architecture.
_ROUTED = "moe"


def sweep_groups(run: RooflineRun, sweep: str, rows: Sequence[Row]) -> Iterator[PointGroup]:
    """Yield the points of a sweep: by kind where settings are colours, else by setting and kind."""
    if sweep in SHADES:
        for kind in dict.fromkeys(row.kind for row in rows):
            yield point_group(KIND_WORDS[kind], KIND_WORDS[kind], _of_kind(rows, kind), run, is_shaded=True)
        return
    for label in dict.fromkeys(map(_label, rows)):
        yield from groups_by_kind(run, label, [row for row in rows if _label(row) == label])


def groups_by_kind(run: RooflineRun, label: str, rows: Sequence[Row]) -> Iterator[PointGroup]:
    """Yield the points of one label, a group for each kind."""
    for kind in dict.fromkeys(row.kind for row in rows):
        yield point_group(label, KIND_WORDS[kind], _of_kind(rows, kind), run)


def point_group(
    label: str,
    kind: str,
    rows: Sequence[Row],
    run: RooflineRun,
    *,
    texts: tuple[str, ...] = (),
    is_shaded: bool = False,
) -> PointGroup:
    """Return the points of rows, with the ranges of their intensities where routing leaves them open."""
    points = [run.point(row) for row in rows]
    is_open = any(point.least_intensity < point.most_intensity for point in points)
    return PointGroup(
        label=label,
        kind=kind,
        x=tuple(point.operational_intensity for point in points),
        y=tuple(to_giga_per_s(point.flops_per_s) for point in points),
        least_x=tuple(point.least_intensity for point in points) if is_open else None,
        most_x=tuple(point.most_intensity for point in points) if is_open else None,
        shades=tuple(row.value or 0.0 for row in rows) if is_shaded else None,
        texts=texts,
        is_joined=is_shaded or all(row.sweep == _ROUTED and row.kind is RowKind.PREFILL for row in rows),
    )


def place_of(point: Point) -> tuple[float, float]:
    """Return where a point lies: FLOP/byte and FLOP/s."""
    return point.operational_intensity, point.flops_per_s


def _of_kind(rows: Sequence[Row], kind: RowKind) -> list[Row]:
    return sorted((row for row in rows if row.kind is kind), key=lambda row: row.value or 0.0)


def _label(row: Row) -> str:
    words = {
        _ROUTED: row.subject.architecture,
        "kv": f"KV cache of {row.setting}",
        "flash": f"flash attention {row.setting}",
        "threads": format_count(row.subject.n_threads, "thread"),
    }
    return words.get(row.sweep, row.setting)


class _Device(NamedTuple):
    """A roof in a picture of several, with the rows below it where it was measured here."""

    name: str
    roof: Roof
    run: RooflineRun | None = None
    rows: tuple[Row, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.name}, {ridge_words(self.roof)}"


def devices_chart(runs: Sequence[RooflineRun], published: Sequence[tuple[str, Roof]]) -> RooflineChart:
    """Return the classical roofs of measured devices with their points, beside published ones, given by name."""
    devices = [*map(_measured, runs), *(_Device(name, roof) for name, roof in published)]
    if not devices:
        raise PerfsuiteError("roofline: there is no device, expected at least one run or published roof")
    points = [place_of(each.run.point(row)) for each in devices if each.run for row in each.rows]
    faster = [each for each in map(_faster, devices) if each]
    frame = frame_of(points, [*(each.roof for each in devices), *(roof for _, roof in faster)])
    panel = RooflinePanel(
        title="",
        roofs=(
            *(
                roof_line(each.label, each.roof, frame, role=RoofRole.MAIN, is_measured=each.run is not None)
                for each in devices
            ),
            *(roof_line(label, roof, frame, role=RoofRole.SIDE) for label, roof in faster),
        ),
        ridges=tuple(ridge(each.roof, is_named=False) for each in devices),
        groups=tuple(
            group for each in devices if each.run for group in groups_by_kind(each.run, each.label, each.rows)
        ),
    )
    return RooflineChart(
        title=_ridges_finding(devices),
        note="; ".join([*map(conditions, runs), *(["thin broken roofs as published"] if published else [])]),
        n_columns=1,
        x_axis=frame.x_axis,
        y_axis=frame.y_axis,
        shade_axis=None,
        panels=(panel,),
    )


def _measured(run: RooflineRun) -> _Device:
    name = f"{run.device}, {format_count(run.n_threads, 'thread')}"
    return _Device(name, run.survey.of(CPU, run.n_threads).memory_roof, run, _shown(run))


def _faster(device: _Device) -> tuple[str, Roof] | None:
    """Return the roof of the arithmetic that a device's points have, where it is not FP32."""
    if device.run is None or not device.rows:
        return None
    arithmetic = arithmetic_roofs(device.run.survey.of(CPU, device.run.n_threads))
    name, roof = roof_above(arithmetic, [device.run.point(row) for row in device.rows])
    label = f"{device.name}, {name}, {format_flops_per_s(roof.peak_flops_per_s)}"
    return None if roof == device.roof else (label, roof)


def _ridges_finding(devices: Sequence[_Device]) -> str:
    least, *_, most = sorted((*devices, devices[0]), key=lambda each: each.roof.ridge_point)
    low, high = (f"{each.roof.ridge_point:.2f}" for each in (least, most))
    if least is most:
        return f"{least.name}: the ridge lies at {low} FLOP/byte"
    return f"Ridges lie between {low} FLOP/byte ({least.name}) and {high} ({most.name})"


def _shown(run: RooflineRun) -> tuple[Row, ...]:
    """Return the phases of what no sweep varies, else those of the scenarios, else all."""
    phases = tuple(row for row in run.rows if row.kind in PHASES and row.subject.n_threads == run.n_threads)
    by_sweep = (tuple(row for row in phases if row.sweep == sweep) for sweep in (BASE, "scenario"))
    return next(filter(None, by_sweep), phases)


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
