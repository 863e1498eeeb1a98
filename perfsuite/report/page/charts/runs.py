"""How the phases moved from run to run, in the order of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone

from perfsuite.records.moments import moment_of
from perfsuite.records.outcome import Judgement
from perfsuite.report.page.charts.axes import change_axis, linear_axis, look_of, looks, shown, tip
from perfsuite.report.page.charts.figure import Figure, Spec
from perfsuite.report.page.charts.names import case_name, short_names
from perfsuite.report.page.page_run import PageRun
from perfsuite.report.run_file import RunFile
from perfsuite.units import format_count, format_ns, format_ratio, to_change_percent

_NEVER = datetime.max.replace(tzinfo=timezone.utc)


def in_order_of_time(runs: list[RunFile]) -> list[RunFile]:
    """Return runs by the time at which they began, the oldest first; what cannot be read as a time comes last."""
    return sorted(runs, key=lambda run: (moment_of(run.started_at) or _NEVER, run.started_at))


def run_label(run: RunFile) -> str:
    """Name a run shortly, by month, day and time."""
    return run.started_at[5:16].replace("T", " ")


_HEIGHT, _MOST_PHASES, _MOST_RUNS = 240, 6, 60
_THIS = "this run"


def runs_figure(run: RunFile, others: Sequence[PageRun]) -> Iterator[Figure]:
    """Show the medians of the longest phases that at least two runs have, against the oldest of the runs."""
    shown_runs = in_order_of_time([run, *(each.run for each in others)])[-_MOST_RUNS:]
    series = [each for each in _series(run, shown_runs) if len(each) > 1]
    if not series:
        return
    names = short_names(_THIS if each is run else run_label(each) for each in shown_runs)
    labels = dict(zip(map(id, shown_runs), names, strict=True))
    yield Figure(
        figure_id="runs",
        subject="runs",
        title="Phases from run to run",
        summary=f"{format_count(len(shown_runs), 'run')} in the order of time; change since the oldest one: "
        f"{'; '.join(map(_told, series))}.",
        spec=_spec(series, labels, [labels[id(each)] for each in shown_runs]),
    )


def _series(run: RunFile, shown_runs: Sequence[RunFile]) -> Iterator[list[tuple[RunFile, Judgement]]]:
    phases = [each for each in run.judgements if each.kind == "phase" and each.measured_ns]
    longest = sorted(phases, key=lambda each: -(each.measured_ns or 0))[:_MOST_PHASES]
    measured = {id(each): {case.case_id: case for case in each.judgements if case.measured_ns} for each in shown_runs}
    for phase in longest:
        yield [(each, found) for each in shown_runs if (found := measured[id(each)].get(phase.case_id))]


def _told(series: Sequence[tuple[RunFile, Judgement]]) -> str:
    first, last = series[0][1], series[-1][1]
    return f"{case_name(last)} {format_ratio((last.measured_ns or 1) / (first.measured_ns or 1))}"


def _spec(series: Sequence[Sequence[tuple[RunFile, Judgement]]], labels: dict[int, str], order: Sequence[str]) -> Spec:
    names = short_names(case_name(each[0][1]) for each in series)
    values = [point for name, each in zip(names, series, strict=True) for point in _points(name, each, labels)]
    kinds = looks("phase", {name: look_of(place) for place, name in enumerate(names)})
    line = {"type": "line", "strokeWidth": 1.5, "opacity": 0.8}
    point = {"type": "point", "filled": True, "size": 60, "opacity": 1}
    axis = {"title": None, "labelAngle": -35, "grid": False}
    change = linear_axis("") | {"axis": change_axis("change since the oldest run (%)", 5)}
    return {
        "height": _HEIGHT,
        "data": {"values": values},
        "encoding": {
            "x": {"field": "run", "type": "ordinal", "scale": {"domain": list(order)}, "axis": axis},
            "y": {"field": "change", **change},
        },
        "layer": [
            {"mark": line, "encoding": {"color": kinds["color"]}},
            {"mark": point, "encoding": {**kinds, "tooltip": tip()}},
        ],
    }


def _points(name: str, series: Sequence[tuple[RunFile, Judgement]], labels: dict[int, str]) -> Iterator[Spec]:
    first_ns = series[0][1].measured_ns or 1
    for run, judgement in series:
        ratio = (judgement.measured_ns or first_ns) / first_ns
        told = f"{case_name(judgement)}, {run.started_at[:16].replace('T', ' ')}: {format_ns(judgement.measured_ns)}"
        yield {
            "phase": name,
            "run": labels[id(run)],
            "change": shown(to_change_percent(ratio)),
            "tip": f"{told} ({format_ratio(ratio)})",
        }
