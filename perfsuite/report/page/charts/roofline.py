"""What phases and operators attain of what the device could, by their operational intensity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from perfsuite.expectation.roofline.point import Roof
from perfsuite.records.ceilings import Ceilings
from perfsuite.records.observation import Observation
from perfsuite.records.outcome import Judgement
from perfsuite.records.run_file import RunFile
from perfsuite.report.charts.axes import log_axis
from perfsuite.report.charts.svg import Canvas, Look, legend, rule, words
from perfsuite.report.page.charts.figure import Figure, case_name, phase_of, short_names
from perfsuite.report.roofline_roofs import arithmetic_roofs, cache_levels
from perfsuite.units import (
    NS_PER_S,
    format_bytes,
    format_bytes_per_s,
    format_count,
    format_flops_per_s,
    format_ns,
    to_giga_per_s,
)

_HEIGHT = 300
_KINDS = {
    "phase": Look(colour="k1", shape="diamond"),
    "operator of prefill": Look(colour="k0", shape="circle"),
    "operator of embed": Look(colour="k0", shape="circle"),
    "operator of encode_image": Look(colour="k4", shape="down"),
    "operator of decode": Look(colour="k2", shape="up"),
    "other": Look(colour="k3", shape="square"),
}
_N_DASHES = 6
#: How far below the highest roof the picture goes at the least and at the most, decades.
_LEAST_DECADES, _MOST_DECADES = 3.0, 6.0
_WORD_CHARACTERS = 16
#: From this part of the width on a phase's name stands left of its mark, and how far from it.
_WORDS_RIGHT, _WORDS_BESIDE = 0.5, 0.02
_ROOM = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    judgement: Judgement
    kind: str
    intensity: float
    flops_per_s: float


def roofline_figure(run: RunFile, observation: Observation) -> Iterator[Figure]:
    """Show the measured roofs with all cases of which the work is known."""
    points = list(_points(run, observation))
    if run.ceilings is None or not points:
        return
    summary = _summary(run.ceilings, points)
    yield Figure(
        figure_id="roofline",
        subject="roofline",
        title="Roofline: what is attained of what the device can do",
        summary=summary,
        drawing=_drawing(run.ceilings, points, summary),
    )


def _points(run: RunFile, observation: Observation) -> Iterator[_Point]:
    measured = {each.case_id: each for each in run.judgements if each.measured_ns}
    for work in observation.works:
        judgement, intensity = measured.get(work.case_id), work.operational_intensity
        if judgement is not None and judgement.measured_ns and intensity and work.flops:
            rate = work.flops * NS_PER_S / judgement.measured_ns
            yield _Point(judgement=judgement, kind=_kind(judgement), intensity=intensity, flops_per_s=rate)


def _kind(judgement: Judgement) -> str:
    kind = "phase" if judgement.kind == "phase" else f"operator of {phase_of(judgement)}"
    return kind if kind in _KINDS else "other"


def _summary(ceilings: Ceilings, points: Sequence[_Point]) -> str:
    memory = ceilings.bandwidths[-1].fastest_bytes_per_s
    told = [
        f"{case_name(each.judgement)} {format_flops_per_s(each.flops_per_s)} at {each.intensity:.3g} FLOP/byte"
        for each in points
        if each.kind == "phase"
    ]
    phases = f" {'; '.join(told)}." if told else ""
    return (
        f"{format_count(len(points), 'case')} under the roofs that were measured with "
        f"{format_count(ceilings.n_threads, 'thread')}: memory {format_bytes_per_s(memory)}, "
        f"FP32 {format_flops_per_s(ceilings.fp32_flops_per_s)}.{phases} "
        "The higher, the faster; left of a corner memory is the limit, right of it arithmetic."
    )


def _drawing(ceilings: Ceilings, points: Sequence[_Point], summary: str) -> Markup:
    peaks = arithmetic_roofs(ceilings)
    top = max(roof.peak_flops_per_s for _, roof in peaks)
    slopes = _slopes(ceilings, top)
    low_x, high_x, low_y = _edges(points, top, peaks)
    canvas = Canvas(
        x=log_axis([low_x, high_x], "operational intensity (FLOP/byte)"),
        y=log_axis([to_giga_per_s(low_y), to_giga_per_s(top * 2.0)], "GFLOP/s"),
        height=_HEIGHT,
    )
    fastest = max(roof.bandwidth_bytes_per_s for _, roof in slopes)
    lines = [(f"ink d{place % _N_DASHES}", _slope(roof, low_x, low_y)) for place, (_, roof) in enumerate(slopes)]
    marks = [canvas.curves(lines), *(part for label, roof in peaks for part in _peak(canvas, label, roof, fastest))]
    ordered = sorted(points, key=lambda each: each.kind == "phase")
    marks += [part for each in ordered for part in _marks(canvas, each)]
    seen = {each.kind for each in points}
    key = legend((kind, look) for kind, look in _KINDS.items() if kind in seen)
    return key + _slope_legend(label for label, _ in slopes) + canvas.plot(marks, summary)


def _slopes(ceilings: Ceilings, top: float) -> list[tuple[str, Roof]]:
    memory = ceilings.levels[-1][1]
    rates = [(f"memory {format_bytes_per_s(memory)}", memory)]
    for held_bytes, rate in reversed(cache_levels(ceilings)):
        rates.append((f"{format_bytes(held_bytes)} {format_bytes_per_s(rate)}", rate))
    return [(label, Roof(peak_flops_per_s=top, bandwidth_bytes_per_s=rate)) for label, rate in rates]


def _edges(points: Sequence[_Point], top: float, peaks: Sequence[tuple[str, Roof]]) -> tuple[float, float, float]:
    """Return where the picture ends: left, right and below; corners and points are inside."""
    ridge = max(roof.ridge_point for _, roof in peaks)
    x = [*(each.intensity for each in points), ridge / _ROOM, ridge * _ROOM]
    lowest = min(each.flops_per_s for each in points) / 2.0
    return min(x) / 1.5, max(x) * 1.5, min(max(lowest, top / 10**_MOST_DECADES), top / 10**_LEAST_DECADES)


def _slope(roof: Roof, low_x: float, low_y: float) -> list[tuple[float, float]]:
    start = max(low_x, low_y / roof.bandwidth_bytes_per_s)
    return [(each, to_giga_per_s(roof.attainable_flops_per_s(each))) for each in (start, roof.ridge_point)]


def _slope_legend(labels: Iterable[str]) -> Markup:
    """Say which dashes are of which bandwidth."""
    entry = (
        '<li><svg width="26" height="8" aria-hidden="true"><line class="ink d{}" x2="26" y1="4" y2="4"/></svg> {}</li>'
    )
    # format escapes what it is given
    entries = (Markup(entry).format(place % _N_DASHES, label) for place, label in enumerate(labels))  # nosec B704
    return Markup('<ul class="legend">{}</ul>').format(Markup("").join(entries))


def _peak(canvas: Canvas, label: str, roof: Roof, fastest_bytes_per_s: float) -> Iterator[Markup]:
    start = canvas.x.part(roof.peak_flops_per_s / fastest_bytes_per_s)
    y = canvas.down(to_giga_per_s(roof.peak_flops_per_s))
    yield rule(start, y, 1.0, y, "ink")
    yield words(1.0, y - 4, f"{label} {format_flops_per_s(roof.peak_flops_per_s)}", "end")


def _marks(canvas: Canvas, point: _Point) -> Iterator[Markup]:
    name, rate = case_name(point.judgement), to_giga_per_s(point.flops_per_s)
    told = f"{format_flops_per_s(point.flops_per_s)} at {point.intensity:.3g} FLOP/byte"
    yield canvas.mark(
        point.intensity, rate, _KINDS[point.kind], f"{name}: {told}, {format_ns(point.judgement.measured_ns)}"
    )
    if point.kind == "phase":
        part = canvas.x.part(point.intensity)
        is_left = part < _WORDS_RIGHT
        shift = _WORDS_BESIDE if is_left else -_WORDS_BESIDE
        short = short_names([name], _WORD_CHARACTERS)[0]
        yield words(part + shift, canvas.down(rate) + 4, short, "start strong" if is_left else "end strong")
