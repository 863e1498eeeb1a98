"""Phases, the most expensive operators of each phase, and kernels: measured, expected, floor and baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfsuite.records.events import GRAPH_PHASES
from perfsuite.records.outcome import Judgement
from perfsuite.report.page.charts.axes import TIME_LOOKS, TimeScale, layer, log_axis, looks, row_axis, tip, zero_axis
from perfsuite.report.page.charts.figure import Figure, Spec
from perfsuite.report.page.charts.names import case_name, phase_of, role_of, short_names, wide_names
from perfsuite.report.run_file import RunFile
from perfsuite.units import format_count, format_ns, format_ratio

_STEP = 28
#: How far a linear axis goes beyond the largest median to show a sample or the end of a range.
_MOST_ABOVE = 1.3
#: The most samples of a row that are drawn: more would only cover each other.
_MOST_SAMPLES = 40

#: How far below the middle of its row a sample lies, so that no median covers it.
_BELOW = 9


def time_rows(judgements: Sequence[Judgement], labels: Sequence[str], names: Sequence[str], *, is_log: bool) -> Spec:
    """Return the rows of measured cases, each with its label at the left and its whole name where it is pointed at."""
    rows = list(zip(labels, names, judgements, strict=True))
    scale = TimeScale.of(time for _, _, each in rows for _, time in _times(each))
    medians = [_mark(label, name, kind, time, scale) for label, name, each in rows for kind, time in _times(each)]
    samples = [point for label, name, each in rows for point in _samples(label, name, each, scale)]
    ranges = [_range(label, name, each, scale) for label, name, each in rows if each.lower_ns and each.upper_ns]
    told = [each["time"] for each in medians]
    ends = [*(each["time"] for each in samples), *(each[end] for each in ranges for end in ("low", "high"))]
    highest = min(max(told) * _MOST_ABOVE, max(*told, *ends))
    time = log_axis([*told, *ends], scale.title()) if is_log else zero_axis(highest, scale.title())
    bars = [] if is_log else [_bar_layer([each for each in medians if each["what"] == "measured"], time)]
    return {
        "usermeta": {"wideNames": wide_names(names)},
        "height": _STEP * len(labels),
        "encoding": {"y": row_axis(labels)},
        "layer": [*bars, *_range_layer(ranges, time), _sample_layer(samples, time), _median_layer(medians, time)],
    }


def _times(judgement: Judgement) -> Iterator[tuple[str, float]]:
    told = (judgement.floor_ns, judgement.baseline_ns, judgement.expected_ns, judgement.measured_ns)
    old = "old side" if judgement.baseline_samples_ns else "baseline"
    for kind, time_ns in zip(("floor", old, "expected", "measured"), told, strict=True):
        if time_ns:
            yield kind, time_ns


def _mark(label: str, name: str, kind: str, time_ns: float, scale: TimeScale) -> Spec:
    return {"row": label, "what": kind, "time": scale(time_ns), "tip": f"{name}, {kind}: {format_ns(time_ns)}"}


def _samples(label: str, name: str, judgement: Judgement, scale: TimeScale) -> Iterator[Spec]:
    for time_ns in judgement.samples_ns[:_MOST_SAMPLES]:
        if time_ns > 0:
            yield {"row": label, "time": scale(time_ns), "tip": f"{name}, a replicate: {format_ns(time_ns)}"}


def _range(label: str, name: str, judgement: Judgement, scale: TimeScale) -> Spec:
    low_ns, high_ns = judgement.lower_ns or 0, judgement.upper_ns or 0
    told = f"{name}, expected between {format_ns(low_ns)} and {format_ns(high_ns)}"
    return {"row": label, "low": scale(low_ns), "high": scale(high_ns), "tip": told}


def _bar_layer(medians: Sequence[Spec], time: Spec) -> Spec:
    encoding = {"x": {"field": "time", **time}, "tooltip": tip()}
    return layer("bar", medians, encoding, height=3, opacity=0.5, color=TIME_LOOKS["measured"].colour)


def _range_layer(ranges: Sequence[Spec], time: Spec) -> list[Spec]:
    if not ranges:
        return []
    look = {"height": 10, "opacity": 0.28, "color": TIME_LOOKS["expected"].colour, "cornerRadius": 5}
    encoding = {"x": {"field": "low", **time}, "x2": {"field": "high"}, "tooltip": tip()}
    return [layer("bar", ranges, encoding, clip=True, **look)]


def _sample_layer(samples: Sequence[Spec], time: Spec) -> Spec:
    look = {"size": 14, "opacity": 0.45, "yOffset": _BELOW, "color": TIME_LOOKS["measured"].colour}
    return layer("circle", samples, {"x": {"field": "time", **time}, "tooltip": tip()}, clip=True, **look)


def _median_layer(medians: Sequence[Spec], time: Spec) -> Spec:
    seen = {each["what"] for each in medians}
    look = looks("what", {kind: each for kind, each in TIME_LOOKS.items() if kind in seen})
    encoding = {"x": {"field": "time", **time}, **look, "tooltip": tip()}
    return layer("point", medians, encoding, filled=True, size=60, opacity=1)


def gaps(judgements: Sequence[Judgement], names: Sequence[str]) -> str:
    """Tell in words of each case what it took, what was expected and what it took before."""
    return "; ".join(_gap(each, name) for each, name in zip(judgements, names, strict=True))


def reading(judgements: Sequence[Judgement]) -> str:
    """Tell how to read the rows."""
    has_range = any(each.lower_ns and each.upper_ns for each in judgements)
    pale = ", the pale bar where the forecast expects the time" if has_range else ""
    return f"Small dots are single replicates{pale}."


def _gap(judgement: Judgement, name: str) -> str:
    told = [f"{name} {format_ns(judgement.measured_ns)}"]
    if judgement.expected_ns:
        told.append(f"expected {format_ns(judgement.expected_ns)}")
    if judgement.change_ratio:
        told.append(f"{format_ratio(judgement.change_ratio)} against before")
    return ", ".join(told)


#: Rows of a figure, and cases that its summary tells.
_MOST_ROWS, _MOST_TOLD = 20, 3


def phases_figure(run: RunFile) -> Iterator[Figure]:
    """Show all phases, in the order of the run."""
    shown = [each for each in run.judgements if each.kind == "phase" and _is_drawn(each)]
    if shown:
        names = [case_name(each) for each in shown]
        yield _figure("phases", "phases", "Time of each phase", shown, names, 0)


def operators_figures(run: RunFile) -> Iterator[Figure]:
    """Show the most expensive operators of each phase that has any."""
    for phase in (each.value for each in GRAPH_PHASES):
        found = [each for each in run.judgements if phase_of(each) == phase and _is_drawn(each)]
        shown = _most_expensive(found)
        if shown:
            title = f"Most expensive operators of {phase}" if len(found) > len(shown) else f"Operators of {phase}"
            left = len(found) - len(shown)
            yield _figure(f"operators-{phase}", "operators", title, shown, [role_of(each) for each in shown], left)


def kernels_figures(run: RunFile) -> Iterator[Figure]:
    """Show the kernels that the engine launched, and those of the suite, by their times."""
    for kind, title in (("engine_kernel", "Kernels of the engine"), ("kernel", "Kernels")):
        found = [each for each in run.judgements if each.kind == kind and _is_drawn(each)]
        shown = _most_expensive(found)
        if shown:
            names = [case_name(each) for each in shown]
            figure_id = f"kernels-{kind.partition('_')[0]}"
            yield _figure(figure_id, "kernels", title, shown, names, len(found) - len(shown))


def _figure(
    figure_id: str, subject: str, title: str, shown: Sequence[Judgement], names: Sequence[str], n_left: int
) -> Figure:
    longest = sorted(zip(shown, names, strict=True), key=lambda each: -(each[0].measured_ns or 0))[:_MOST_TOLD]
    told = gaps([each for each, _ in longest], [name for _, name in longest])
    left = f" {format_count(n_left, 'shorter one')} not drawn." if n_left else ""
    return Figure(
        figure_id=figure_id,
        subject=subject,
        title=title,
        summary=f"Longest: {told}.{left} {reading(shown)}",
        spec=time_rows(shown, short_names(names), names, is_log=subject == "phases"),
    )


def _most_expensive(found: Sequence[Judgement]) -> list[Judgement]:
    return sorted(found, key=lambda each: -(each.measured_ns or 0))[:_MOST_ROWS]


def _is_drawn(judgement: Judgement) -> bool:
    return bool(judgement.measured_ns and judgement.samples_ns)
