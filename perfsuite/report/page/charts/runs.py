"""How the phases moved from run to run, in the order of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone

from perfsuite.records.outcome import Judgement
from perfsuite.records.run_file import RunFile, moment_of
from perfsuite.report.charts.axes import linear_axis
from perfsuite.report.charts.svg import Canvas
from perfsuite.report.page.charts.figure import Figure, Point, case_name, lines_plot
from perfsuite.report.page.page_run import PageRun
from perfsuite.units import format_count, format_ns, format_ratio, to_change_percent

_HEIGHT, _MOST_PHASES, _MOST_RUNS, _MOST_LABELS = 180, 6, 60, 5
_NEVER = datetime.max.replace(tzinfo=timezone.utc)


def in_order_of_time(runs: list[RunFile]) -> list[RunFile]:
    """Return runs by the time at which they began, the oldest first; what cannot be read as a time comes last."""
    return sorted(runs, key=lambda run: (moment_of(run.started_at) or _NEVER, run.started_at))


def runs_figure(run: RunFile, others: Sequence[PageRun]) -> Iterator[Figure]:
    """Show the medians of the longest phases that at least two runs have, against the oldest of the runs."""
    shown_runs = in_order_of_time([run, *(each.run for each in others)])[-_MOST_RUNS:]
    phases = [each for each in run.judgements if each.kind == "phase" and each.measured_ns]
    longest = sorted(phases, key=lambda each: -(each.measured_ns or 0))[:_MOST_PHASES]
    series = {case_name(each): points for each in longest if len(points := _points(each, shown_runs)) > 1}
    if not series:
        return
    changes = [change for points in series.values() for _, change, _, _ in points]
    newest = "; ".join(f"{name} {format_ratio(1.0 + points[-1][1] / 100.0)}" for name, points in series.items())
    summary = f"{format_count(len(shown_runs), 'run')} in the order of time; change since the oldest one: {newest}."
    canvas = Canvas(
        x=linear_axis("", -0.3, len(shown_runs) - 0.7),
        y=linear_axis("change since the oldest run (%)", min(*changes, -5.0), max(*changes, 5.0), is_signed=True),
        height=_HEIGHT,
    )
    step = -(-len(shown_runs) // _MOST_LABELS)
    labels = [
        (float(place), "this run" if each is run else each.started_at[5:16].replace("T", " "))
        for place, each in enumerate(shown_runs)
        if place % step == 0
    ]
    drawing = lines_plot(series, canvas, summary, labels, names_one=True)
    yield Figure(figure_id="runs", subject="runs", title="Phases from run to run", summary=summary, drawing=drawing)


def _points(phase: Judgement, runs: Sequence[RunFile]) -> list[Point]:
    """Return the points of a phase, of the runs that have it: the run's place, and the change since the oldest."""
    points: list[Point] = []
    oldest_ns = None
    for place, run in enumerate(runs):
        time_ns = next((each.measured_ns for each in run.judgements if each.case_id == phase.case_id), None)
        if time_ns:
            oldest_ns = oldest_ns or time_ns
            when = run.started_at[:16].replace("T", " ")
            ratio = format_ratio(time_ns / oldest_ns)
            tip = f"{case_name(phase)}, {when}: {format_ns(time_ns)} ({ratio})"
            points.append((place, to_change_percent(time_ns / oldest_ns), tip, ()))
    return points
