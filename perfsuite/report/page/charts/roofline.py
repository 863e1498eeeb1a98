"""What phases and operators attain of what the device could, by their operational intensity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perfsuite.expectation.ceilings import Ceilings
from perfsuite.expectation.roofline.survey import ProcessorCeilings, Roof
from perfsuite.records.observation import Observation
from perfsuite.records.outcome import Judgement
from perfsuite.report.page.charts.axes import (
    BLUE,
    DASHES,
    GOLD,
    GREEN,
    PURPLE,
    VERMILLION,
    Look,
    layer,
    log_axis,
    looks,
    shown,
    tip,
)
from perfsuite.report.page.charts.figure import Figure, Spec
from perfsuite.report.page.charts.names import case_name, phase_of, short_names
from perfsuite.report.roofline_roofs import arithmetic_roofs, cache_levels
from perfsuite.report.run_file import RunFile
from perfsuite.units import (
    NS_PER_S,
    format_bytes,
    format_bytes_per_s,
    format_count,
    format_flops_per_s,
    format_ns,
    to_giga_per_s,
)

_HEIGHT = 340
_KINDS = {
    "phase": Look(colour=VERMILLION, shape="diamond"),
    "operator of prefill": Look(colour=BLUE, shape="circle"),
    "operator of embed": Look(colour=BLUE, shape="circle"),
    "operator of encode_image": Look(colour=GOLD, shape="triangle-down"),
    "operator of decode": Look(colour=GREEN, shape="triangle-up"),
    "other": Look(colour=PURPLE, shape="square"),
}
_SIZES = {"phase": 150}
_SIZE = 55
#: How far below the highest roof the picture goes at the least and at the most, decades.
_LEAST_DECADES, _MOST_DECADES = 3.0, 6.0
_WORD_CHARACTERS = 16
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
    yield Figure(
        figure_id="roofline",
        subject="roofline",
        title="Roofline: what is attained of what the device can do",
        summary=_summary(run.ceilings, points),
        spec=_spec(_processor(run.ceilings), points),
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


def _processor(ceilings: Ceilings) -> ProcessorCeilings:
    return ProcessorCeilings(
        levels=tuple((each.working_set_bytes, each.fastest_bytes_per_s) for each in ceilings.bandwidths),
        fp32_flops_per_s=ceilings.fp32_flops_per_s,
        f16_flops_per_s=ceilings.f16_flops_per_s,
        int8_flops_per_s=ceilings.int8_flops_per_s,
    )


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


def _spec(ceilings: ProcessorCeilings, points: Sequence[_Point]) -> Spec:
    peaks = arithmetic_roofs(ceilings)
    top = max(roof.peak_flops_per_s for _, roof in peaks)
    slopes = _slopes(ceilings, top)
    low_x, high_x, low_y = _edges(points, top, peaks)
    lines = [place for label, roof in slopes for place in _slope(label, roof, low_x, low_y)]
    fastest = max(roof.bandwidth_bytes_per_s for _, roof in slopes)
    rate_axis = log_axis([to_giga_per_s(low_y), to_giga_per_s(top * 2.0)], "GFLOP/s")
    return {
        "height": _HEIGHT,
        "encoding": {
            "x": {"field": "intensity", **log_axis([low_x, high_x], "operational intensity (FLOP/byte)")},
            "y": {"field": "rate", **rate_axis},
        },
        "layer": [
            _slope_layer(lines, [label for label, _ in slopes]),
            *_peak_layers([_peak(label, roof, fastest, high_x) for label, roof in peaks]),
            _point_layer(points),
            *_word_layers(points, low_x, high_x),
        ],
    }


def _slopes(ceilings: ProcessorCeilings, top: float) -> list[tuple[str, Roof]]:
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


def _slope(label: str, roof: Roof, low_x: float, low_y: float) -> Iterator[Spec]:
    start = max(low_x, low_y / roof.bandwidth_bytes_per_s)
    for intensity in (start, roof.ridge_point):
        rate = to_giga_per_s(roof.attainable_flops_per_s(intensity))
        yield {"roof": label, "intensity": shown(intensity), "rate": shown(rate), "tip": label}


def _peak(label: str, roof: Roof, fastest_bytes_per_s: float, high_x: float) -> Spec:
    told = f"{label} {format_flops_per_s(roof.peak_flops_per_s)}"
    start = roof.peak_flops_per_s / fastest_bytes_per_s
    rate = shown(to_giga_per_s(roof.peak_flops_per_s))
    return {"intensity": shown(start), "end": shown(high_x), "rate": rate, "told": told}


def _slope_layer(lines: Sequence[Spec], labels: Sequence[str]) -> Spec:
    dash = {
        "field": "roof",
        "type": "nominal",
        "scale": {"domain": list(labels), "range": [list(DASHES[place % len(DASHES)]) for place in range(len(labels))]},
        "legend": {"title": None, "symbolType": "stroke", "symbolSize": 300, "symbolStrokeWidth": 1.5},
    }
    return layer("line", lines, {"strokeDash": dash, "tooltip": tip()}, strokeWidth=1.5, style="ink", clip=True)


def _peak_layers(peaks: Sequence[Spec]) -> Iterator[Spec]:
    yield layer("rule", peaks, {"x2": {"field": "end"}}, strokeWidth=1.5)
    encoding = {"x": {"field": "end", "type": "quantitative"}, "text": {"field": "told"}}
    yield layer("text", peaks, encoding, align="right", baseline="bottom", dy=-3)


def _place(point: _Point) -> Spec:
    name = case_name(point.judgement)
    rate = f"{format_flops_per_s(point.flops_per_s)} at {point.intensity:.3g} FLOP/byte"
    told = f"{name}: {rate}, {format_ns(point.judgement.measured_ns)}"
    return {
        "kind": point.kind,
        "intensity": shown(point.intensity),
        "rate": shown(to_giga_per_s(point.flops_per_s)),
        "size": _SIZES.get(point.kind, _SIZE),
        "tip": told,
    }


def _point_layer(points: Sequence[_Point]) -> Spec:
    seen = {each.kind for each in points}
    encoding = {
        **looks("kind", {kind: look for kind, look in _KINDS.items() if kind in seen}),
        "size": {"field": "size", "type": "quantitative", "scale": None, "legend": None},
        "tooltip": tip(),
    }
    ordered = sorted(points, key=lambda each: each.kind == "phase")
    return layer("point", [_place(each) for each in ordered], encoding, filled=True, opacity=0.9, clip=True)


def _word_layers(points: Sequence[_Point], low_x: float, high_x: float) -> Iterator[Spec]:
    phases = [each for each in points if each.kind == "phase"]
    for align, dx, is_left in (("left", 10, True), ("right", -10, False)):
        side = [each for each in phases if (each.intensity**2 < low_x * high_x) == is_left]
        if side:
            words = [
                {**_place(each), "told": short_names([case_name(each.judgement)], _WORD_CHARACTERS)[0]} for each in side
            ]
            yield layer("text", words, {"text": {"field": "told"}}, align=align, dx=dx, fontWeight="bold")
