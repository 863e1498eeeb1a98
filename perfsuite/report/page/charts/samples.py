"""Where the single times of a case lie: a stroke for each, this run above what it was compared with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from markupsafe import Markup

from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.report.charts.axes import Axis, TimeScale, level_axis
from perfsuite.report.charts.svg import across, picture
from perfsuite.units import format_ns

#: Pixels of a row, and the most strokes in it: more would only cover each other.
_ROW, _MOST_STROKES = 20, 60


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    name: str
    colour: str
    times_ns: Sequence[int]


def samples_drawing(judgement: Judgement) -> Markup | None:
    """Draw the samples of a case on one scale; None where they answer no question: of a part that passed, or of one."""
    rows = list(_rows(judgement))
    every = [time_ns for row in rows for time_ns in row.times_ns]
    if len(every) < 2 or (judgement.outcome is Outcome.PASS and judgement.kind != "phase"):
        return None
    scale = TimeScale.of(every)
    axis = level_axis(scale.title(), [scale(each) for each in every])
    summary = "; ".join(f"{row.name} {format_ns(min(row.times_ns))} to {format_ns(max(row.times_ns))}" for row in rows)
    names = Markup("").join(Markup("<span>{}</span>").format(row.name) for row in rows)
    drawn = picture([_strokes(axis, scale, rows), *_numbers(axis, len(rows) * _ROW)], len(rows) * _ROW, summary)
    return Markup('<div class="samples"><div aria-hidden="true">{}</div>{}<p>{}</p></div>').format(
        names, drawn, axis.title
    )


def _rows(judgement: Judgement) -> Iterator[_Row]:
    """Return the rows that have times above 0."""
    old = judgement.baseline_samples_ns
    found = (
        _Row(name="this run", colour="k0", times_ns=judgement.samples_ns),
        _Row(name="old side" if old else "baseline", colour="k4", times_ns=old or (judgement.baseline_ns or 0,)),
    )
    for row in found:
        if times_ns := [each for each in row.times_ns if each > 0]:
            yield replace(row, times_ns=times_ns)


def _strokes(axis: Axis, scale: TimeScale, rows: Sequence[_Row]) -> Markup:
    """Draw a row of strokes for each of the rows, and the medians as taller ones."""
    paths = [
        (row.colour, "".join(f"M{_across(axis, scale, each)} {place * _ROW + 4}v12" for each in _few(row.times_ns)))
        for place, row in enumerate(rows)
    ]
    middles = "".join(
        f"M{_across(axis, scale, median(row.times_ns))} {place * _ROW + 1}v18" for place, row in enumerate(rows)
    )
    drawn = (Markup('<path class="{}" d="{}"/>').format(*each) for each in (*paths, ("median", middles)))
    view = Markup('<svg class="curves" viewBox="0 0 1000 {}" preserveAspectRatio="none">{}</svg>')
    return view.format(len(rows) * _ROW, Markup("").join(drawn))


def _across(axis: Axis, scale: TimeScale, time_ns: float) -> str:
    return f"{axis.part(scale(time_ns)) * 1000:.0f}"


def _few(times_ns: Sequence[int]) -> list[int]:
    """Return times; of many those at even distances in their order by size, with the least and the most."""
    ordered, last = sorted(times_ns), len(times_ns) - 1
    if last < _MOST_STROKES:
        return ordered
    return [ordered[round(place * last / (_MOST_STROKES - 1))] for place in range(_MOST_STROKES)]


def _numbers(axis: Axis, height: int) -> Iterator[Markup]:
    for tick in axis.ticks:
        yield Markup('<text x="{}" y="{}">{}</text>').format(across(axis.part(tick)), height + 14, axis.label(tick))
