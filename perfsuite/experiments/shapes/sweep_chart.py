"""The picture of a sweep over shapes: time above, efficiency below, each beside what the tile makes of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from perfsuite.experiments.shapes.sweep_findings import quantile_name, sweep_finding
from perfsuite.experiments.shapes.sweep_record import ShapeSweep
from perfsuite.records.chart import Axis, Line, LineChart, LinePanel

_NS_PER_US = 1e3
_MOST_TICKS = 16

_MEASURED, _MODEL, _IDEAL = "measured", "model: padded to whole tiles", "ideal: no padding"

_MEANS = {
    "b": "products side by side",
    "m": "tokens",
    "n": "rows of weights or keys",
    "k": "inner dimension",
    "heads": "query heads",
    "kvheads": "KV heads",
    "head": "values of a head",
    "context": "positions in the cache",
}


def shape_sweep_chart(sweep: ShapeSweep) -> LineChart:
    """Return a panel of times, where there are any, and one of efficiencies."""
    panels = (_efficiency_panel(sweep),)
    return LineChart(
        title=sweep_finding(sweep),
        note=f"{sweep.title}, {_note(sweep)}",
        n_columns=1,
        panels=(_time_panel(sweep), *panels) if sweep.n_rounds else panels,
    )


def _note(sweep: ShapeSweep) -> str:
    if not sweep.n_rounds:
        return "nothing measured; padding after LIFE, Fig. 8"
    return f"{sweep.subject} on {sweep.device}; {quantile_name(sweep)} of {sweep.n_rounds} rounds in drawn orders"


def _time_panel(sweep: ShapeSweep) -> LinePanel:
    known = [
        (each, each.time_ns * each.efficiency_ratio) for each in sweep.points if each.time_ns and each.efficiency_ratio
    ]
    ideal = [(point.size, ideal_ns) for point, ideal_ns in known]
    model = [
        (point.size, ideal_ns / useful) for point, ideal_ns in known if (useful := point.expected_efficiency_ratio)
    ]
    lines = (
        _line(_MEASURED, [(point.size, point.time_ns) for point in sweep.points], _NS_PER_US),
        _line(_MODEL, model, _NS_PER_US),
        _line(_IDEAL, ideal, _NS_PER_US, is_reference=True),
    )
    return LinePanel(
        title="time of a launch; model and ideal at the best rate that was reached",
        x_axis=_x_axis(sweep),
        y_axis=Axis(label="time", unit="µs", least=0.0),
        lines=tuple(line for line in lines if line.x),
    )


def _efficiency_panel(sweep: ShapeSweep) -> LinePanel:
    lines = (
        _line(_MEASURED, [(point.size, point.efficiency_ratio) for point in sweep.points]),
        _line(_MODEL, [(point.size, point.expected_efficiency_ratio) for point in sweep.points]),
    )
    return LinePanel(
        title=f"efficiency: useful FLOP/s over the best; mean {_means_text(sweep)}",
        x_axis=_x_axis(sweep),
        y_axis=Axis(label="efficiency", least=0.0),
        lines=tuple(line for line in lines if line.x),
    )


def _means_text(sweep: ShapeSweep) -> str:
    means = ((_MEASURED, sweep.mean_efficiency_ratio), ("model", sweep.expected_mean_efficiency_ratio))
    return ", ".join(f"{ratio:.3f} {name}" for name, ratio in means if ratio is not None)


def _line(
    label: str, values: Sequence[tuple[int, float | None]], unit: float = 1.0, *, is_reference: bool = False
) -> Line:
    known = [(float(size), value / unit) for size, value in values if value is not None]
    return Line(
        label=label, x=tuple(size for size, _ in known), y=tuple(value for _, value in known), is_reference=is_reference
    )


def _x_axis(sweep: ShapeSweep) -> Axis:
    """Return an axis with ticks at multiples of the tile, of many at each second, fourth and so on."""
    first, last = sweep.points[0].size, sweep.points[-1].size
    tick_step = None
    if sweep.step is not None and sweep.step > 1:
        crowding = (last - first) / sweep.step / _MOST_TICKS
        tick_step = sweep.step * 2.0 ** max(0, math.ceil(math.log2(crowding))) if crowding > 0.0 else 1.0 * sweep.step
    return Axis(
        label=f"{sweep.swept}: {_MEANS[sweep.swept]}", least=float(first), most=float(last), tick_step=tick_step
    )
