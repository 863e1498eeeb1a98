"""What the machine was like while the run was measured: clock, heat, lost time, and the sentinels beside the cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from markupsafe import Markup

from perfsuite.records.observation import MachineState, Observation
from perfsuite.records.run_file import RunFile
from perfsuite.report.charts.axes import Axis, level_axis, linear_axis, log_axis, shown
from perfsuite.report.charts.svg import Canvas, Look, legend, look_of
from perfsuite.report.page.charts.figure import Figure
from perfsuite.report.page.charts.names import readable, short_names
from perfsuite.units import format_count, format_ns, format_ratio, to_percent

_HEIGHT = 96
_LEFT_OUT = "left out"
_THROTTLED = "throttled"
_MARKS = {_LEFT_OUT: Look(colour="ink", shape="cross"), _THROTTLED: Look(colour="ink", shape="ring")}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    series: str
    x: float
    y: float
    tip: str
    #: Why the replicate stands out, if it does.
    marks: tuple[str, ...] = ()


class _Quantity(NamedTuple):
    figure_id: str
    title: str
    label: str
    unit: str
    #: Fields of the machine's state by what is told apart within a group, if anything; ratios are shown as percents.
    fields: dict[str, str]
    #: Whether replicates in which the device held its clocks back are marked: for what has to do with heat.
    marks_throttling: bool = False

    @property
    def axis(self) -> str:
        return f"{self.label} ({self.unit})" if self.unit else self.label


_QUANTITIES = (
    _Quantity(
        "machine-clock",
        "Clock of the processor",
        "clock",
        "MHz",
        {"": "cpu_mhz", "least": "least_cpu_mhz", "most": "most_cpu_mhz"},
        marks_throttling=True,
    ),
    _Quantity(
        "machine-temperature",
        "Temperature",
        "temperature",
        "°C",
        {"": "temperature_celsius", "most": "most_celsius"},
        marks_throttling=True,
    ),
    _Quantity("machine-power", "Power of the device", "power", "W", {"": "power_watts"}, marks_throttling=True),
    _Quantity("machine-battery", "Charge of the battery", "charge", "%", {"": "battery_ratio"}),
    _Quantity(
        "machine-waiting",
        "Time lost to others",
        "share of the time",
        "%",
        {"waiting": "waiting_ratio", "stolen": "steal_ratio"},
    ),
)


def machine_figures(run: RunFile, observation: Observation) -> Iterator[Figure]:
    """Show each quantity that was read at least twice, and the sentinels."""
    for quantity in _QUANTITIES:
        yield from _quantity_figure(quantity, observation.states)
    yield from _sentinel_figure(run)


def _quantity_figure(quantity: _Quantity, states: Sequence[MachineState]) -> Iterator[Figure]:
    points = [_state_point(quantity, state, series, value) for state, series, value in _read(quantity, states)]
    if len(points) < 2:
        return
    values = [each.y for each in points]
    marked = f"{_marked(points, _LEFT_OUT, 'a cross')}{_marked(points, _THROTTLED, 'a ring')}"
    summary = f"{_range_words(quantity, values)}.{marked}"
    yield Figure(
        figure_id=quantity.figure_id,
        subject="machine",
        title=quantity.title,
        summary=summary,
        drawing=_drawing(points, "time in the run (s)", level_axis(quantity.axis, values), summary),
    )


def _marked(points: Sequence[_Point], what: str, mark: str) -> str:
    n_marked = len({each.x for each in points if what in each.marks})
    return f" {format_count(n_marked, 'replicate')} {what}, marked with {mark}." if n_marked else ""


def _range_words(quantity: _Quantity, values: Sequence[float]) -> str:
    """Tell between which values a quantity lay, in digits that matter; a single value once."""
    least, most = _figure_words(min(values)), _figure_words(max(values))
    unit = f" {quantity.unit}" if quantity.unit else ""
    if least == most:
        return f"{least}{unit} around each replicate"
    return f"Around each replicate from {least} to {most}{unit}, in the middle {_figure_words(median(values))}{unit}"


def _figure_words(value: float) -> str:
    digits = 0 if abs(value) >= 100.0 else 1 if abs(value) >= 10.0 else 2
    return f"{round(value, digits):g}" if abs(value) < 1e5 else f"{value:.0f}"


def _read(quantity: _Quantity, states: Sequence[MachineState]) -> Iterator[tuple[MachineState, str, float]]:
    for state in states:
        for name, field in quantity.fields.items():
            value = getattr(state, field)
            if value is not None:
                told = to_percent(value) if field.endswith("_ratio") else value
                yield state, readable(f"{state.group} {name}"), shown(told)


def _state_point(quantity: _Quantity, state: MachineState, series: str, value: float) -> _Point:
    unit = f" {quantity.unit}" if quantity.unit else ""
    is_marked = {_LEFT_OUT: not state.is_valid, _THROTTLED: quantity.marks_throttling and bool(state.throttled)}
    marks = tuple(what for what, is_so in is_marked.items() if is_so)
    told = ", ".join((series, f"{state.at_s:.1f} s: {_figure_words(value)}{unit}", *marks))
    return _Point(series=series, x=shown(state.at_s), y=value, tip=told, marks=marks)


def _sentinel_figure(run: RunFile) -> Iterator[Figure]:
    points = [point for series, times_ns in _sentinels(run) for point in _sentinel_points(series, times_ns)]
    if len(points) < 2:
        return
    ratios = [each.y for each in points]
    summary = (
        "The time of each sentinel in each replicate, over its own median: "
        f"{format_ratio(min(ratios))} to {format_ratio(max(ratios))}. Level lines are an even machine."
    )
    yield Figure(
        figure_id="machine-sentinels",
        subject="machine",
        title="Sentinels: fixed work beside the cases",
        summary=summary,
        drawing=_drawing(points, "replicate", log_axis([*ratios, 0.9, 1.12], "time over its median"), summary),
    )


def _sentinels(run: RunFile) -> Iterator[tuple[str, tuple[int, ...]]]:
    for group, sentinels in run.sentinels_ns.items():
        for name, times in sentinels.items():
            if times and min(times) > 0:
                yield readable(f"{group} {name}"), times


def _sentinel_points(series: str, times_ns: Sequence[int]) -> Iterator[_Point]:
    middle_ns = median(times_ns)
    for number, time_ns in enumerate(times_ns, start=1):
        told = f"{series}, replicate {number}: {format_ns(time_ns)}"
        yield _Point(series=series, x=number, y=shown(time_ns / middle_ns), tip=told)


def _drawing(points: Sequence[_Point], x_title: str, y: Axis, summary: str) -> Markup:
    names = list(dict.fromkeys(each.series for each in points))
    looks = {name: look_of(place) for place, name in enumerate(names)}
    xs = [each.x for each in points]
    canvas = Canvas(
        x=linear_axis(x_title, min(xs), max(xs), least_step=1.0 if x_title == "replicate" else 0.0), y=y, height=_HEIGHT
    )
    lines = [
        (look.colour, [(each.x, each.y) for each in points if each.series == name]) for name, look in looks.items()
    ]
    marks = [canvas.mark(each.x, each.y, looks[each.series], each.tip) for each in points]
    marks += [canvas.mark(each.x, each.y, _MARKS[what], each.tip) for each in points for what in each.marks]
    key = legend(zip(short_names(names), looks.values(), strict=True)) if len(names) > 1 else Markup("")
    return key + canvas.plot([canvas.curves(lines), *marks], summary)
