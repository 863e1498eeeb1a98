"""The picture of a sweep over layers offloaded: speed of each phase, splits, and operators on the processor."""

from __future__ import annotations

from collections.abc import Callable

from perfsuite.experiments.offload.sweep import OffloadPoint, OffloadSweep
from perfsuite.records.chart import Axis, Line, XYChart, XYPanel
from perfsuite.records.events import Phase
from perfsuite.trace.placement import PROCESSOR_BACKEND, Placement
from perfsuite.units import format_count

_X_AXIS = Axis(label="layers on the device")


def offload_chart(sweep: OffloadSweep, *, name: str, device: str) -> XYChart:
    """Return a panel for each phase's speed, one for the splits of a step, and one for what the processor computes."""
    points = sorted(sweep.points, key=lambda point: point.n_gpu_layers)
    return XYChart(
        title=offload_finding(sweep),
        note=f"{name} on {device}; median of fresh processes that take turns, and down to the slowest of them",
        n_columns=2,
        panels=(
            *(_speed_panel(points, phase) for phase in sweep.phases),
            _placement_panel(points, "splits of a call", lambda placed: len(placed.splits)),
            _placement_panel(points, "operators on the processor", _n_on_processor),
        ),
    )


def _n_on_processor(placed: Placement) -> int:
    return sum(each.n_operators for each in placed.shares if each.backend == PROCESSOR_BACKEND)


def offload_finding(sweep: OffloadSweep) -> str:
    """Say with how many layers on the device each phase is fastest."""
    told = []
    for phase in sweep.phases:
        fastest = sweep.fastest(phase)
        speed = fastest.speed(phase) if fastest else None
        if fastest is not None and speed is not None:
            where = f"{format_count(fastest.n_gpu_layers, 'layer')} on the device"
            told.append(f"{phase.value} is fastest with {where} ({speed.median_tokens_per_s:.4g} tokens/s)")
    return "; ".join(told)


def _speed_panel(points: list[OffloadPoint], phase: Phase) -> XYPanel:
    ran = [(point, speed) for point in points if (speed := point.speed(phase)) is not None]
    line = Line(
        label=phase.value,
        x=tuple(float(point.n_gpu_layers) for point, _ in ran),
        y=tuple(speed.median_tokens_per_s for _, speed in ran),
        low_y=tuple(speed.least_tokens_per_s for _, speed in ran),
    )
    axis = Axis(label="speed (tokens/s)", least=0.0)
    return XYPanel(title=phase.value, x_axis=_X_AXIS, y_axis=axis, lines=(line,))


def _placement_panel(points: list[OffloadPoint], title: str, count: Callable[[Placement], int]) -> XYPanel:
    phases = [each.phase for each in points[0].placements]
    lines = tuple(
        Line(
            label=phase.value,
            x=tuple(float(point.n_gpu_layers) for point in points),
            y=tuple(float(count(each)) for point in points for each in point.placements if each.phase is phase),
        )
        for phase in phases
    )
    return XYPanel(title=title, x_axis=_X_AXIS, y_axis=Axis(label="number", least=0.0), lines=lines)
