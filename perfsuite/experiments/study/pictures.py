"""The picture of a study: accuracy against the seconds of a token, with the frontier and its knee."""

from __future__ import annotations

from collections.abc import Iterator

from perfsuite.experiments.study.joined import Study, StudyPoint, TokenKind
from perfsuite.records.chart import Axis, Line, PointGroup, ScatterChart, ScatterPanel
from perfsuite.units import NS_PER_S, format_count, format_ns


def study_chart(study: Study) -> ScatterChart:
    """Return two panels a task: against an input token, and against an output token."""
    tasks = dict.fromkeys(point.task for point in study.points)
    return ScatterChart(
        title=_finding(study, next(iter(tasks))),
        note=f"{study.plan.title}: {format_count(len(study.plan.runs), 'run')}, accuracy normalised to "
        f"{study.plan.reference}; the knee is the member of the frontier that is furthest above its chord",
        n_columns=len(TokenKind),
        panels=tuple(_panel(study, task, kind) for task in tasks for kind in TokenKind),
    )


def _finding(study: Study, task: str) -> str:
    frontier = study.frontier(task, TokenKind.OUTPUT)
    if frontier.knee is None:
        return f"{task}: {format_count(len(frontier.members), 'run')} on the frontier of output tokens, without a knee"
    knee = frontier.knee
    return (
        f"{task}: the knee of the frontier is {knee.name}, {format_ns(knee.latency_s * NS_PER_S)} an output token at "
        f"{knee.accuracy:.3f} of the reference's accuracy"
    )


def _panel(study: Study, task: str, kind: TokenKind) -> ScatterPanel:
    points = [point for point in study.points if point.task == task]
    frontier = study.frontier(task, kind)
    knee = frontier.knee
    return ScatterPanel(
        title=f"{task}, {kind.value} tokens",
        x_axis=Axis(label=f"time of an {kind.value} token", unit="s", least=0.0),
        y_axis=Axis(label=f"accuracy, {study.plan.reference} = 1"),
        groups=tuple(_groups(points, kind)),
        lines=(
            Line(
                label="frontier",
                x=tuple(each.latency_s for each in frontier.members),
                y=tuple(each.accuracy for each in frontier.members),
            ),
        ),
        ringed=PointGroup(label="knee", kind="", x=(knee.latency_s,), y=(knee.accuracy,)) if knee else None,
    )


def _groups(points: list[StudyPoint], kind: TokenKind) -> Iterator[PointGroup]:
    """Yield a group for each suite and, where there are originals, one for what is quantised."""
    for suite in dict.fromkeys(point.run.suite for point in points):
        for is_original, name in ((True, "original"), (False, "quantised")):
            own = [each for each in points if each.run.suite == suite and each.run.is_original is is_original]
            if own:
                yield PointGroup(
                    label=suite,
                    kind=name if any(each.run.is_original for each in points) else "",
                    x=tuple(each.latency_s(kind) for each in own),
                    y=tuple(each.normalised_accuracy for each in own),
                    texts=tuple(each.run.name.removeprefix(f"{suite} ") for each in own),
                )
