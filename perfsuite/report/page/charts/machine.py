"""What the machine was like while the run was measured: clock, heat, lost time, and the sentinels beside the cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from perfsuite.records.observation import MachineState, Observation
from perfsuite.records.run_file import RunFile
from perfsuite.report.charts.axes import level_axis, linear_axis, log_axis, shown
from perfsuite.report.charts.svg import Canvas, Look
from perfsuite.report.page.charts.figure import Figure, Point, lines_plot
from perfsuite.units import format_count, format_ns, format_ratio, to_percent

_HEIGHT = 96
_LEFT_OUT, _THROTTLED = Look(colour="ink", shape="cross"), Look(colour="ink", shape="ring")


class _Quantity(NamedTuple):
    figure_id: str
    title: str
    label: str
    unit: str
    #: Fields of the machine's state by what is told apart within a group, if anything; ratios are shown as percents.
    fields: Mapping[str, str]
    #: Whether replicates in which the device held its clocks back are marked: for what has to do with heat.
    marks_throttling: bool = False


_CLOCKS = {"": "cpu_mhz", "least": "least_cpu_mhz", "most": "most_cpu_mhz"}
_HEAT = {"": "temperature_celsius", "most": "most_celsius"}
_LOST = {"waiting": "waiting_ratio", "stolen": "steal_ratio"}
_QUANTITIES = (
    _Quantity("machine-clock", "Clock of the processor", "clock", "MHz", _CLOCKS, marks_throttling=True),
    _Quantity("machine-temperature", "Temperature", "temperature", "°C", _HEAT, marks_throttling=True),
    _Quantity("machine-power", "Power of the device", "power", "W", {"": "power_watts"}, marks_throttling=True),
    _Quantity("machine-battery", "Charge of the battery", "charge", "%", {"": "battery_ratio"}),
    _Quantity("machine-waiting", "Time lost to others", "share of the time", "%", _LOST),
)


def machine_figures(run: RunFile, observation: Observation) -> Iterator[Figure]:
    """Show each quantity that was read at least twice, and the sentinels."""
    for quantity in _QUANTITIES:
        yield from _quantity_figure(quantity, observation.states)
    yield from _sentinel_figure(run)


def _quantity_figure(quantity: _Quantity, states: Sequence[MachineState]) -> Iterator[Figure]:
    series: dict[str, list[Point]] = {}
    for state in states:
        marks = [_LEFT_OUT] if not state.is_valid else []
        marks += [_THROTTLED] if quantity.marks_throttling and state.throttled else []
        for name, field in quantity.fields.items():
            if (value := getattr(state, field)) is not None:
                group = f"{state.group} {name}".strip()
                value = shown(to_percent(value) if field.endswith("_ratio") else value)
                reasons = [word for look, word in ((_LEFT_OUT, "left out"), (_THROTTLED, "throttled")) if look in marks]
                tip = ", ".join((group, f"{state.at_s:.1f} s: {_digits(value)} {quantity.unit}", *reasons))
                series.setdefault(group, []).append((shown(state.at_s), value, tip, marks))
    points = [each for of_group in series.values() for each in of_group]
    if len(points) < 2:
        return
    values = [value for _, value, _, _ in points]
    marked = _marked(points, _LEFT_OUT, "left out, marked with a cross")
    marked += _marked(points, _THROTTLED, "throttled, marked with a ring")
    summary = f"{_range_words(quantity, values)}.{marked}"
    times = [at_s for at_s, _, _, _ in points]
    x, y = linear_axis("time in the run (s)", min(times), max(times)), f"{quantity.label} ({quantity.unit})"
    yield Figure(
        figure_id=quantity.figure_id,
        subject="machine",
        title=quantity.title,
        summary=summary,
        drawing=lines_plot(series, Canvas(x=x, y=level_axis(y, values), height=_HEIGHT), summary),
    )


def _marked(points: Sequence[Point], look: Look, words: str) -> str:
    n_marked = len({x for x, _, _, marks in points if look in marks})
    return f" {format_count(n_marked, 'replicate')} {words}." if n_marked else ""


def _range_words(quantity: _Quantity, values: Sequence[float]) -> str:
    """Tell between which values a quantity lay, in digits that matter; a single value once."""
    least, middle, most = map(_digits, (min(values), median(values), max(values)))
    if least == most:
        return f"{least} {quantity.unit} around each replicate"
    return f"Around each replicate from {least} to {most} {quantity.unit}, in the middle {middle} {quantity.unit}"


def _digits(value: float) -> str:
    digits = 0 if abs(value) >= 100.0 else 1 if abs(value) >= 10.0 else 2
    return f"{round(value, digits):g}" if abs(value) < 1e5 else f"{value:.0f}"


def _sentinel_figure(run: RunFile) -> Iterator[Figure]:
    series: dict[str, list[Point]] = {}
    for group, sentinels in run.sentinels_ns.items():
        for name, times in sentinels.items():
            if times and min(times) > 0:
                middle_ns, called = median(times), f"{group} {name}"
                series[called] = [
                    (number, shown(each / middle_ns), f"{called}, replicate {number}: {format_ns(each)}", ())
                    for number, each in enumerate(times, start=1)
                ]
    ratios = [ratio for points in series.values() for _, ratio, _, _ in points]
    if len(ratios) < 2:
        return
    summary = (
        "The time of each sentinel in each replicate, over its own median: "
        f"{format_ratio(min(ratios))} to {format_ratio(max(ratios))}. Level lines are an even machine."
    )
    x = linear_axis("replicate", 1.0, max(map(len, series.values())), least_step=1.0)
    y = log_axis([*ratios, 0.9, 1.12], "time over its median")
    yield Figure(
        figure_id="machine-sentinels",
        subject="machine",
        title="Sentinels: fixed work beside the cases",
        summary=summary,
        drawing=lines_plot(series, Canvas(x=x, y=y, height=_HEIGHT), summary),
    )
