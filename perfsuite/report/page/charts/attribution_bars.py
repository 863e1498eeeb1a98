"""Where the time went that a phase lost: what each operator carries of it."""

from __future__ import annotations

from collections.abc import Iterator

from perfsuite.records.attribution import PhaseAttribution
from perfsuite.report.page.charts.axes import NUMBERS, TimeScale, looks, row_axis, tip
from perfsuite.report.page.charts.figure import Figure, Spec
from perfsuite.report.page.charts.names import readable, short_names, some_of, wide_names
from perfsuite.report.page.charts.palette import BLUE, GREY, VERMILLION, Look
from perfsuite.report.run_file import RunFile
from perfsuite.units import format_count, format_signed_ns

_MOST_CARRIERS, _MOST_CARRIERS_TOLD, _BAR_STEP = 12, 3, 24
_WHOLE, _SURE, _UNSURE, _LEFT = "the phase", "changed", "not sure", "left over"
_KINDS = {
    _WHOLE: Look(colour=BLUE, shape="square"),
    _SURE: Look(colour=VERMILLION, shape="square"),
    _UNSURE: Look(colour=GREY, shape="circle"),
    _LEFT: Look(colour=GREY, shape="circle"),
}


def attribution_figures(run: RunFile) -> Iterator[Figure]:
    """Show the carriers of each phase that lost time; nothing where all moved alike, for then none of them is it."""
    if run.attribution.uniform_shift:
        return
    for place, phase in enumerate(run.attribution.phases, start=1):
        if phase.carriers:
            yield _figure(place, phase)


def _figure(place: int, phase: PhaseAttribution) -> Figure:
    name = readable(phase.case_id.rpartition("/")[2])
    told = [f"{readable(each.role)} {format_signed_ns(each.lost_ns)}" for each in phase.carriers]
    verb = "lost" if phase.lost_ns >= 0 else "won"
    return Figure(
        figure_id=f"attribution-{place}",
        subject="attribution",
        title=f"Where the time went that {name} {verb}",
        summary=f"{name} {format_signed_ns(phase.lost_ns)}, of which {some_of(told, _MOST_CARRIERS_TOLD)}; "
        f"{format_signed_ns(phase.unexplained_ns)} left over.{_left(phase)}",
        spec=_bars_spec(name, phase),
    )


def _left(phase: PhaseAttribution) -> str:
    more = len(phase.carriers) - _MOST_CARRIERS
    return f" {format_count(more, 'smaller part')} not drawn." if more > 0 else ""


def _bars_spec(name: str, phase: PhaseAttribution) -> Spec:
    carriers = phase.carriers[:_MOST_CARRIERS]
    names = [f"{name} in all", *(readable(each.role) for each in carriers), "left over"]
    kinds = [_WHOLE, *(_SURE if each.is_significant else _UNSURE for each in carriers), _LEFT]
    losses = [phase.lost_ns, *(each.lost_ns for each in carriers), phase.unexplained_ns]
    scale, labels = TimeScale.of(losses), short_names(names)
    rows = [
        {"row": label, "what": kind, "lost": scale(loss), "tip": f"{whole}: {format_signed_ns(loss)}"}
        for label, whole, kind, loss in zip(labels, names, kinds, losses, strict=True)
    ]
    look = looks("what", {kind: each for kind, each in _KINDS.items() if kind in kinds})
    time = {"type": "quantitative", "axis": {"title": scale.title("time lost"), "format": NUMBERS, "tickCount": 6}}
    bars = {"x": {"field": "lost", **time}, "color": look["color"], "tooltip": tip()}
    zero = {"x": {"datum": 0, **time}, "y": {"value": 0}, "y2": {"value": "height"}}
    return {
        "usermeta": {"wideNames": wide_names(names)},
        "height": _BAR_STEP * len(labels),
        "data": {"values": rows},
        "encoding": {"y": row_axis(labels)},
        "layer": [
            {"mark": {"type": "bar", "height": 13}, "encoding": bars},
            {"mark": {"type": "rule", "opacity": 0.7}, "encoding": zero},
        ],
    }
