"""Where the single times of a case lie: a stroke for each, this run above what it was compared with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from markupsafe import Markup

from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.report.page.charts.axes import Axis, TimeScale, level_axis
from perfsuite.report.page.charts.svg import across, picture
from perfsuite.units import format_ns

#: Pixels of a row, and the most strokes in it: more would only cover each other.
_ROW, _MOST_SAMPLES = 20, 60
_COLOURS = ("k0", "k4")


def samples_drawing(judgement: Judgement) -> Markup | None:
    """Draw the samples of a case on one scale; None where they answer no question: of a part that passed, or of one."""
    rows = [(name, [each for each in times if each > 0]) for name, times in _rows(judgement)]
    every = [time_ns for _, times in rows for time_ns in times]
    if len(every) < 2 or (judgement.outcome is Outcome.PASS and judgement.kind != "phase"):
        return None
    scale = TimeScale.of(every)
    axis = level_axis(scale.title(), [scale(each) for each in every])
    scaled = [[scale(each) for each in times] for _, times in rows]
    summary = "; ".join(f"{name} {format_ns(min(times))} to {format_ns(max(times))}" for name, times in rows)
    names = Markup("").join(Markup("<span>{}</span>").format(name) for name, _ in rows)
    drawn = picture([_strokes(axis, scaled), *_numbers(axis, len(rows) * _ROW)], len(rows) * _ROW, summary)
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


def _strokes(axis: Axis, rows: Sequence[Sequence[float]]) -> Markup:
    """Draw a row of strokes for each of the rows, and the medians as taller ones."""
    paths = [
        (colour, "".join(f"M{axis.part(time) * 1000:.0f} {place * _ROW + 4}v12" for time in times))
        for place, (colour, times) in enumerate(zip(_COLOURS, rows, strict=False))
    ]
    middles = "".join(
        f"M{axis.part(median(times)) * 1000:.0f} {place * _ROW + 1}v18" for place, times in enumerate(rows) if times
    )
    drawn = (Markup('<path class="{}" d="{}"/>').format(*each) for each in (*paths, ("median", middles)))
    view = Markup('<svg class="curves" viewBox="0 0 1000 {}" preserveAspectRatio="none">{}</svg>')
    return view.format(len(rows) * _ROW, Markup("").join(drawn))


def _numbers(axis: Axis, height: int) -> Iterator[Markup]:
    for tick in axis.ticks:
        yield Markup('<text x="{}" y="{}">{}</text>').format(across(axis.part(tick)), height + 14, axis.label(tick))
