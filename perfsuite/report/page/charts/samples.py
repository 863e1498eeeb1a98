"""Where the single times of a case lie: a stroke for each, this run above what it was compared with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from markupsafe import Markup

from perfsuite.records.outcome import Judgement
from perfsuite.report.page.charts.axes import Axis, TimeScale, level_axis
from perfsuite.report.page.charts.svg import picture, rule, words
from perfsuite.units import format_ns

_ROW, _MOST_SAMPLES = 20, 60


def samples_drawing(judgement: Judgement) -> Markup | None:
    """Draw the samples of a case on one scale; None where there is nothing to compare."""
    rows = [(name, [each for each in times if each > 0]) for name, times in _rows(judgement)]
    every = [time_ns for _, times in rows for time_ns in times]
    if len(every) < 2:
        return None
    scale = TimeScale.of(every)
    axis = level_axis(scale.title(), [scale(each) for each in every])
    marks = [mark for place, (_, times) in enumerate(rows) for mark in _row(axis, place, [scale(t) for t in times])]
    summary = "; ".join(f"{name} {format_ns(min(times))} to {format_ns(max(times))}" for name, times in rows)
    names = Markup("").join(Markup("<span>{}</span>").format(name) for name, _ in rows)
    drawn = picture([*marks, *_ticks(axis, len(rows) * _ROW)], len(rows) * _ROW, summary)
    return Markup('<div class="samples"><div aria-hidden="true">{}</div>{}<p>{}</p></div>').format(
        names, drawn, axis.title
    )


def _rows(judgement: Judgement) -> Iterator[tuple[str, Sequence[int]]]:
    if judgement.samples_ns:
        yield "this run", judgement.samples_ns[:_MOST_SAMPLES]
    if judgement.baseline_samples_ns:
        yield "old side", judgement.baseline_samples_ns[:_MOST_SAMPLES]
    elif judgement.baseline_ns:
        yield "baseline", (judgement.baseline_ns,)


def _row(axis: Axis, place: int, times: Sequence[float]) -> Iterator[Markup]:
    """Draw a row of strokes, and the median as a taller one."""
    if not times:
        return
    top = place * _ROW
    path = "".join(f"M{axis.part(time) * 1000:.0f} 4v12" for time in times)
    yield Markup(
        '<svg class="curves k{}" y="{}" height="{}" viewBox="0 0 1000 20" preserveAspectRatio="none"><path d="{}"/></svg>'
    ).format(0 if place == 0 else 4, top, _ROW, path)
    at = axis.part(median(times))
    yield rule(at, top + 1, at, top + _ROW - 1, "median")


def _ticks(axis: Axis, height: int) -> Iterator[Markup]:
    yield rule(0.0, height, 1.0, height, "base")
    for tick in axis.ticks:
        yield words(axis.part(tick), height + 14, axis.label(tick), "middle")
