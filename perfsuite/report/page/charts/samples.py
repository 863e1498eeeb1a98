"""Where the single times of a case lie: a stroke for each, this run above what it was compared with."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from markupsafe import Markup

from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.report.charts.axes import TimeScale, level_axis
from perfsuite.report.charts.svg import across, picture
from perfsuite.units import format_ns

#: Pixels of a row, and the most strokes in it: more would only cover each other.
_ROW, _MOST_STROKES = 20, 60


def samples_drawing(judgement: Judgement) -> Markup | None:
    """Draw the samples of a case on one scale; None where they answer no question: of a part that passed, or of one."""
    old = judgement.baseline_samples_ns
    rows = [
        (name, colour, [each for each in times_ns if each > 0])
        for name, colour, times_ns in (
            ("this run", "k0", judgement.samples_ns),
            ("old side" if old else "baseline", "k4", old or (judgement.baseline_ns or 0,)),
        )
    ]
    rows = [row for row in rows if row[2]]
    every = [time_ns for _, _, times_ns in rows for time_ns in times_ns]
    if len(every) < 2 or (judgement.outcome is Outcome.PASS and judgement.kind != "phase"):
        return None
    scale = TimeScale.of(every)
    axis, height = level_axis(scale.title(), [scale(each) for each in every]), len(rows) * _ROW

    def stroke(time_ns: float, y: int, length: int) -> str:
        return f"M{axis.part(scale(time_ns)) * 1000:.0f} {y}v{length}"

    strokes = [
        (colour, "".join(stroke(each, place * _ROW + 4, 12) for each in _few(times_ns)))
        for place, (_, colour, times_ns) in enumerate(rows)
    ]
    medians = "".join(stroke(median(times_ns), place * _ROW + 1, 18) for place, (_, _, times_ns) in enumerate(rows))
    paths = (Markup('<path class="{}" d="{}"/>').format(*each) for each in (*strokes, ("median", medians)))
    view = Markup('<svg class="curves" viewBox="0 0 1000 {}" preserveAspectRatio="none">{}</svg>')
    numbers = (
        Markup('<text x="{}" y="{}">{}</text>').format(across(axis.part(tick)), height + 14, axis.label(tick))
        for tick in axis.ticks
    )
    summary = "; ".join(f"{name} {format_ns(min(times))} to {format_ns(max(times))}" for name, _, times in rows)
    drawn = picture([view.format(height, Markup("").join(paths)), *numbers], height, summary)
    names = Markup("").join(Markup("<span>{}</span>").format(name) for name, _, _ in rows)
    return Markup('<div class="samples"><div aria-hidden="true">{}</div>{}<p>{}</p></div>').format(
        names, drawn, axis.title
    )


def _few(times_ns: Sequence[int]) -> list[int]:
    """Return times; of many those at even distances in their order by size, with the least and the most."""
    ordered, last = sorted(times_ns), len(times_ns) - 1
    if last < _MOST_STROKES:
        return ordered
    return [ordered[round(place * last / (_MOST_STROKES - 1))] for place in range(_MOST_STROKES)]
