"""How the phases moved from run to run, in the order of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone

from markupsafe import Markup

from perfsuite.records.outcome import Judgement
from perfsuite.records.run_file import RunFile, moment_of
from perfsuite.report.charts.axes import linear_axis
from perfsuite.report.charts.svg import Canvas, legend, look_of
from perfsuite.report.page.charts.figure import Figure
from perfsuite.report.page.charts.names import case_name, short_names
from perfsuite.report.page.page_run import PageRun
from perfsuite.units import format_count, format_ns, format_ratio, to_change_percent

_NEVER = datetime.max.replace(tzinfo=timezone.utc)


def in_order_of_time(runs: list[RunFile]) -> list[RunFile]:
    """Return runs by the time at which they began, the oldest first; what cannot be read as a time comes last."""
    return sorted(runs, key=lambda run: (moment_of(run.started_at) or _NEVER, run.started_at))


def run_label(run: RunFile) -> str:
    """Name a run shortly, by month, day and time."""
    return run.started_at[5:16].replace("T", " ")


_HEIGHT, _MOST_PHASES, _MOST_RUNS, _MOST_LABELS = 180, 6, 60, 5
_THIS = "this run"

#: One phase over the runs that have it: the place of the run, the run, and what it measured.
Series = list[tuple[int, RunFile, Judgement]]


def runs_figure(run: RunFile, others: Sequence[PageRun]) -> Iterator[Figure]:
    """Show the medians of the longest phases that at least two runs have, against the oldest of the runs."""
    shown_runs = in_order_of_time([run, *(each.run for each in others)])[-_MOST_RUNS:]
    series = [each for each in _series(run, shown_runs) if len(each) > 1]
    if not series:
        return
    labels = [_THIS if each is run else run_label(each) for each in shown_runs]
    summary = (
        f"{format_count(len(shown_runs), 'run')} in the order of time; change since the oldest one: "
        f"{'; '.join(map(_told, series))}."
    )
    yield Figure(
        figure_id="runs",
        subject="runs",
        title="Phases from run to run",
        summary=summary,
        drawing=_drawing(series, labels, summary),
    )


def _series(run: RunFile, shown_runs: Sequence[RunFile]) -> Iterator[Series]:
    phases = [each for each in run.judgements if each.kind == "phase" and each.measured_ns]
    longest = sorted(phases, key=lambda each: -(each.measured_ns or 0))[:_MOST_PHASES]
    measured = [{case.case_id: case for case in each.judgements if case.measured_ns} for each in shown_runs]
    for phase in longest:
        yield [
            (place, each, measured[place][phase.case_id])
            for place, each in enumerate(shown_runs)
            if phase.case_id in measured[place]
        ]


def _ratio(series: Series, judgement: Judgement) -> float:
    return (judgement.measured_ns or 1) / (series[0][2].measured_ns or 1)


def _told(series: Series) -> str:
    last = series[-1][2]
    return f"{case_name(last)} {format_ratio(_ratio(series, last))}"


def _drawing(all_series: Sequence[Series], labels: Sequence[str], summary: str) -> Markup:
    names = short_names(case_name(each[0][2]) for each in all_series)
    lines = [
        [(place, to_change_percent(_ratio(each, judgement))) for place, _, judgement in each] for each in all_series
    ]
    changes = [change for line in lines for _, change in line]
    low, high = min(*changes, -5.0), max(*changes, 5.0)
    canvas = Canvas(
        x=linear_axis("", -0.3, len(labels) - 0.7),
        y=linear_axis("change since the oldest run (%)", low, high, is_signed=True),
        height=_HEIGHT,
    )
    looks = [look_of(place) for place in range(len(names))]
    marks = [canvas.curves((look.colour, line) for look, line in zip(looks, lines, strict=True))]
    for look, each, line in zip(looks, all_series, lines, strict=True):
        for (place, run, judgement), (_, change) in zip(each, line, strict=True):
            told = (
                f"{case_name(judgement)}, {run.started_at[:16].replace('T', ' ')}: {format_ns(judgement.measured_ns)}"
            )
            marks.append(canvas.mark(place, change, look, f"{told} ({format_ratio(_ratio(each, judgement))})"))
    step = -(-len(labels) // _MOST_LABELS)
    named = [(float(place), label) for place, label in enumerate(labels) if place % step == 0]
    return legend(zip(names, looks, strict=True)) + canvas.plot(marks, summary, named)
