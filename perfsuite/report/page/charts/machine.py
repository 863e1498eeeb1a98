"""What the machine was like while the run was measured: clock, heat, load, and the sentinels beside the cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from perfsuite.records.observation import MachineState, Observation
from perfsuite.report.page.charts.axes import layer, level_axis, linear_axis, log_axis, look_of, looks, shown, tip
from perfsuite.report.page.charts.figure import Figure, Spec
from perfsuite.report.page.charts.names import readable, short_names
from perfsuite.report.run_file import RunFile
from perfsuite.units import format_count, format_ns, format_ratio, to_percent

_HEIGHT = 120
_LEFT_OUT = "left out"
_THROTTLED = "throttled"
_CROSS = "M-1,-1L1,1M1,-1L-1,1"


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
    _Quantity("machine-load", "Load before each replicate", "load average", "", {"": "load_average"}),
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
    values = [value for _, _, value in _read(quantity, states)]
    marks = f"{_marked(points, _LEFT_OUT, 'a cross')}{_marked(points, _THROTTLED, 'a ring')}"
    yield Figure(
        figure_id=quantity.figure_id,
        subject="machine",
        title=quantity.title,
        summary=f"{_range_words(quantity, values)}.{marks}",
        spec=_lines(points, linear_axis("time in the run (s)"), level_axis(quantity.axis, values)),
    )


def _marked(points: Sequence[Spec], what: str, mark: str) -> str:
    n_marked = len({each["at"] for each in points if what in each["marks"]})
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


def _state_point(quantity: _Quantity, state: MachineState, series: str, value: float) -> Spec:
    unit = f" {quantity.unit}" if quantity.unit else ""
    is_marked = {_LEFT_OUT: not state.is_valid, _THROTTLED: quantity.marks_throttling and bool(state.throttled)}
    marks = [what for what, is_so in is_marked.items() if is_so]
    told = ", ".join((series, f"{state.at_s:.1f} s: {_figure_words(value)}{unit}", *marks))
    return {"series": series, "at": shown(state.at_s), "value": value, "marks": marks, "tip": told}


def _sentinel_figure(run: RunFile) -> Iterator[Figure]:
    points = [point for series, times_ns in _sentinels(run) for point in _sentinel_points(series, times_ns)]
    if len(points) < 2:
        return
    ratios = [each["value"] for each in points]
    yield Figure(
        figure_id="machine-sentinels",
        subject="machine",
        title="Sentinels: fixed work beside the cases",
        summary="The time of each sentinel in each replicate, over its own median: "
        f"{format_ratio(min(ratios))} to {format_ratio(max(ratios))}. Level lines are an even machine.",
        spec=_lines(points, linear_axis("replicate"), log_axis([*ratios, 0.9, 1.12], "time over its median")),
    )


def _sentinels(run: RunFile) -> Iterator[tuple[str, tuple[int, ...]]]:
    for group, sentinels in run.sentinels_ns.items():
        for name, times in sentinels.items():
            if times and min(times) > 0:
                yield readable(f"{group} {name}"), times


def _sentinel_points(series: str, times_ns: Sequence[int]) -> Iterator[Spec]:
    middle_ns = median(times_ns)
    for number, time_ns in enumerate(times_ns, start=1):
        told = f"{series}, replicate {number}: {format_ns(time_ns)}"
        yield {"series": series, "at": number, "value": shown(time_ns / middle_ns), "marks": [], "tip": told}


def _lines(points: Sequence[Spec], x_axis: Spec, y_axis: Spec) -> Spec:
    names = list(dict.fromkeys(each["series"] for each in points))
    labels = dict(zip(names, short_names(names), strict=True))
    rows = [{**each, "series": labels[each["series"]]} for each in points]
    for each in rows:
        each.pop("marks")
    marked = {
        what: [row for row, each in zip(rows, points, strict=True) if what in each["marks"]]
        for what in (_THROTTLED, _LEFT_OUT)
    }
    kinds = {labels[name]: look_of(place) for place, name in enumerate(names)}
    look = looks("series", kinds, has_legend=len(names) > 1)
    line = {"type": "line", "strokeWidth": 1.2, "opacity": 0.7}
    point = {"type": "point", "filled": True, "size": 42, "opacity": 1}
    return {
        "height": _HEIGHT,
        "data": {"values": rows},
        "encoding": {"x": {"field": "at", **x_axis}, "y": {"field": "value", **y_axis}},
        "layer": [
            {"mark": line, "encoding": {"color": look["color"]}},
            {"mark": point, "encoding": {**look, "tooltip": tip()}},
            *_mark_layer(marked[_THROTTLED], "circle"),
            *_mark_layer(marked[_LEFT_OUT], _CROSS),
        ],
    }


def _mark_layer(rows: Sequence[Spec], shape: str) -> list[Spec]:
    if not rows:
        return []
    look = {"shape": shape, "size": 150, "style": "ink", "strokeWidth": 2, "opacity": 1}
    return [layer("point", rows, {"tooltip": tip()}, **look)]
