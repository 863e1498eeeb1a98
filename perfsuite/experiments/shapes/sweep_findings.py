"""What a sweep over shapes shows, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from perfsuite.experiments.shapes.sweep_record import ShapeSweep, TileSteps
from perfsuite.experiments.shapes.sweep_sizes import MEANS
from perfsuite.records.chart import Axis, Line, LineRole, XYChart, XYPanel
from perfsuite.units import format_count

#: Sizes that are told one by one; of more only the first.
_MOST_TOLD = 8

_QUANTILES: dict[float | None, str] = {0.125: "lower eighth", 0.25: "lower quartile", 0.5: "median"}


def sweep_finding(sweep: ShapeSweep) -> str:
    """Say in one line where the steps are and how well efficiency follows the tile."""
    if not sweep.n_rounds:
        ratio = sweep.expected_mean_efficiency_ratio
        return f"The model alone: {'-' if ratio is None else f'{ratio:.3f}'} of the padded work is of use"
    steps = _steps_text(sweep)
    steps = steps[0].upper() + steps[1:]
    if sweep.rank_correlation is None:
        return steps
    return f"{steps}; efficiency follows the model with a rank correlation of {sweep.rank_correlation:.3f}"


def quantile_name(sweep: ShapeSweep) -> str:
    """Return what of the rounds a time is, such as ``lower quartile``."""
    return _QUANTILES.get(sweep.quantile, f"quantile {sweep.quantile}")


def size_list(sizes: tuple[int, ...]) -> str:
    """List sizes, of many only the first."""
    told = ", ".join(map(str, sizes[:_MOST_TOLD]))
    return told if len(sizes) <= _MOST_TOLD else f"{told} and {len(sizes) - _MOST_TOLD} more"


def _steps_text(sweep: ShapeSweep) -> str:
    steps = sweep.tile_steps
    if steps is None:
        return _jumps_text(sweep)
    if not steps.found and steps.extra:
        return f"{_jumps_text(sweep)}, none at a multiple of {steps.step}"
    n_multiples = len(steps.found) + len(steps.missed) + len(steps.hidden)
    if not n_multiples:
        return f"no multiple of {steps.step} lies well inside the range"
    return f"steps at {len(steps.found)} of {n_multiples} multiples of {steps.step}"


def _jumps_text(sweep: ShapeSweep) -> str:
    rises = [jump for jump in sweep.jumps if jump.height_ns > 0.0]
    if not rises:
        return "no steps"
    apart = "" if sweep.period is None else f", {sweep.period} apart"
    return f"{format_count(len(rises), 'step')}{apart}"


def sweep_remarks(sweep: ShapeSweep) -> Iterator[str]:
    """Say what a reader must know besides: what disagrees, what noise hides, what is wrong or missing."""
    if sweep.tile_steps is not None:
        yield from _tile_remarks(sweep, sweep.tile_steps)
    falls = tuple(jump.size for jump in sweep.jumps if jump.height_ns < 0.0)
    if falls:
        yield f"The time falls behind {sweep.swept} = {size_list(falls)}: a larger size is faster there."
    wrong = tuple(point.size for point in sweep.points if point.is_correct is False)
    if wrong:
        yield f"The output is wrong at {sweep.swept} = {size_list(wrong)}."
    if missing := [point for point in sweep.points if point.missing is not None]:
        sizes = size_list(tuple(point.size for point in missing))
        yield f"Not measured is {sweep.swept} = {sizes}: {missing[0].missing}"


def _tile_remarks(sweep: ShapeSweep, steps: TileSteps) -> Iterator[str]:
    if steps.missed:
        yield f"No step at {sweep.swept} = {size_list(steps.missed)}, where the tile would make one."
    if steps.hidden and sweep.noise_ratio is not None:
        yield (
            f"Too noisy: times scatter by {100.0 * sweep.noise_ratio:.1f} % from size to size, which would hide a step "
            f"at {sweep.swept} = {size_list(steps.hidden)}; more --rounds, or a quieter machine, would tell."
        )
    if sweep.period is not None and sweep.period != steps.step:
        yield f"The steps are {sweep.period} apart, not {steps.step}: that is not the tile which computes."
    elif steps.extra:
        yield f"Steps at no multiple of the tile: {sweep.swept} = {size_list(steps.extra)}."


_NS_PER_US = 1e3
_MOST_TICKS = 16

_MEASURED, _MODEL, _IDEAL = "measured", "model: padded to whole tiles", "ideal: no padding"


def shape_sweep_chart(sweep: ShapeSweep) -> XYChart:
    """Return a panel of times, where there are any, and one of efficiencies."""
    points = sweep.points
    means = ((_MEASURED, sweep.mean_efficiency_ratio), ("model", sweep.expected_mean_efficiency_ratio))
    mean = ", ".join(f"{ratio:.3f} {name}" for name, ratio in means if ratio is not None)
    efficiencies = _panel(
        sweep,
        f"efficiency: useful FLOP/s over the best; mean {mean}",
        "efficiency",
        _line(_MEASURED, [(point.size, point.efficiency_ratio) for point in points]),
        _line(_MODEL, [(point.size, point.expected_efficiency_ratio) for point in points]),
    )
    title, note = sweep_finding(sweep), "nothing measured; padding after LIFE, Fig. 8"
    if not sweep.n_rounds:
        return XYChart(title=title, note=f"{sweep.title}, {note}", panels=(efficiencies,))
    note = f"{sweep.subject} on {sweep.device}; {quantile_name(sweep)} of {sweep.n_rounds} rounds in drawn orders"
    known = [(each, each.time_ns * each.efficiency_ratio) for each in points if each.time_ns and each.efficiency_ratio]
    model = [
        (point.size, ideal_ns / useful) for point, ideal_ns in known if (useful := point.expected_efficiency_ratio)
    ]
    times = _panel(
        sweep,
        "time of a launch; model and ideal at the best rate that was reached",
        "time (µs)",
        _line(_MEASURED, [(point.size, point.time_ns) for point in points], _NS_PER_US),
        _line(_MODEL, model, _NS_PER_US),
        _line(_IDEAL, [(point.size, ideal_ns) for point, ideal_ns in known], _NS_PER_US, role=LineRole.REFERENCE),
    )
    return XYChart(title=title, note=f"{sweep.title}, {note}", panels=(times, efficiencies))


def _panel(sweep: ShapeSweep, title: str, label: str, *lines: Line) -> XYPanel:
    shown = tuple(line for line in lines if line.x)
    return XYPanel(title=title, x_axis=_x_axis(sweep), y_axis=Axis(label=label, least=0.0), lines=shown)


def _line(
    label: str, values: Sequence[tuple[int, float | None]], unit: float = 1.0, *, role: LineRole = LineRole.SERIES
) -> Line:
    known = [(float(size), value / unit) for size, value in values if value is not None]
    return Line(label=label, x=tuple(size for size, _ in known), y=tuple(value for _, value in known), role=role)


def _x_axis(sweep: ShapeSweep) -> Axis:
    """Return an axis with ticks at multiples of the tile, of many at each second, fourth and so on."""
    first, last = sweep.points[0].size, sweep.points[-1].size
    tick_step = None
    if sweep.step is not None and sweep.step > 1:
        crowding = (last - first) / sweep.step / _MOST_TICKS
        tick_step = sweep.step * 2.0 ** max(0, math.ceil(math.log2(crowding))) if crowding > 0.0 else 1.0 * sweep.step
    return Axis(label=f"{sweep.swept}: {MEANS[sweep.swept]}", least=float(first), most=float(last), tick_step=tick_step)
