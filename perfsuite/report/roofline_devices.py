"""The roofline of several devices in one picture: measured here, and published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.ceiling import CPU
from perfsuite.expectation.roofline.roof import Roof
from perfsuite.expectation.roofline.roofline_run import RooflineRun, Row
from perfsuite.expectation.roofline.sweeps import BASE
from perfsuite.records.chart import RooflineChart, RooflinePanel, RoofRole
from perfsuite.report.roofline_findings import conditions
from perfsuite.report.roofline_points import PHASES, groups_by_kind, place_of
from perfsuite.report.roofline_roofs import arithmetic_roofs, frame_of, ridge, ridge_words, roof_above, roof_line
from perfsuite.units import format_count, format_flops_per_s


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
