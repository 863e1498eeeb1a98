"""How much each compared case changed, as an interval, with the margin within which it passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from perfsuite.records.attribution import PhaseAttribution
from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.report.page.charts.axes import (
    BLUE,
    GREY,
    NUMBERS,
    OUTCOME_LOOKS,
    VERMILLION,
    Look,
    TimeScale,
    change_axis,
    layer,
    looks,
    row_axis,
    shown,
    tip,
)
from perfsuite.report.page.charts.figure import Figure, Spec
from perfsuite.report.page.charts.names import case_name, readable, short_names, some_of, wide_names
from perfsuite.report.run_file import RunFile
from perfsuite.units import format_count, format_ratio, format_signed_ns, to_change_percent

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


_MOST_ROWS, _MOST_TOLD, _STEP = 40, 5, 20
#: The axis shows no less and no more: what is beyond lies at its end, with its value beside it.
_LEAST_PERCENT, _MOST_PERCENT = 6.0, 50.0
#: Up to which part of the axis there is room for words at the right of an interval.
_WORDS_RIGHT = 0.66


def changes_figure(run: RunFile) -> Iterator[Figure]:
    """Show the compared cases: those that fail first, then by the size of the change."""
    compared = [
        each
        for each in sorted(run.judgements, key=_order)
        if None not in (each.measured_ns, each.baseline_ns, each.change_ratio)
    ]
    if not compared:
        return
    drawn = compared[:_MOST_ROWS]
    yield Figure(
        figure_id="changes",
        subject="changes",
        title="Change of each case, slower to the right",
        summary=_summary(compared, drawn),
        spec=_spec(drawn),
    )


def _order(judgement: Judgement) -> tuple[int, float]:
    is_decided = judgement.outcome.fails or judgement.outcome is Outcome.IMPROVED
    rank = 0 if judgement.outcome is Outcome.REGRESSED else 1 if judgement.outcome.fails else 2 if is_decided else 3
    return rank, -abs(to_change_percent(judgement.change_ratio or 1.0))


def _summary(compared: Sequence[Judgement], drawn: Sequence[Judgement]) -> str:
    counts = Counter(each.outcome for each in compared)
    told = ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in Outcome if counts[outcome])
    regressed = [each for each in compared if each.outcome is Outcome.REGRESSED]
    named = some_of([f"{case_name(each)} {format_ratio(each.change_ratio)}" for each in regressed], _MOST_TOLD)
    failed = f" Regressed: {named}." if regressed else ""
    more = len(compared) - len(drawn)
    left = f" {format_count(more, 'case')} with smaller changes not drawn." if more else ""
    bars = " Bars are the bounds of the change." if any(each.lower_ratio for each in drawn) else ""
    margins = " Short upright ticks are the margins of each case." if any(each.margin_ratio for each in drawn) else ""
    return f"{format_count(len(compared), 'case')} compared: {told}.{failed}{left}{bars}{margins}"


def _spec(drawn: Sequence[Judgement]) -> Spec:
    names = [case_name(each) for each in drawn]
    labels = short_names(names)
    least, most = _ends(drawn)
    rows = [_row(each, name, label, least, most) for each, name, label in zip(drawn, names, labels, strict=True)]
    scale = {"domain": [least, most], "nice": False}
    change = {"type": "quantitative", "scale": scale, "axis": change_axis("change (%)", 10)}
    return {
        "usermeta": {"wideNames": wide_names(names)},
        "height": _STEP * len(labels),
        "data": {"values": rows},
        "encoding": {"y": row_axis(labels)},
        "layer": [
            _zero_layer(change),
            *(_margin_layer(end, change) for end in ("gain", "margin") if any(end in row for row in rows)),
            *_change_layers(_kinds(rows), change),
            *_text_layers(rows, change),
        ],
    }


def _ends(drawn: Sequence[Judgement]) -> tuple[float, float]:
    ratios = [bound for each in drawn for bound in (each.change_ratio, each.lower_ratio, each.upper_ratio) if bound]
    percents = [to_change_percent(ratio) for ratio in ratios]
    least = max(-_MOST_PERCENT, min(-_LEAST_PERCENT, *percents))
    most = min(_MOST_PERCENT, max(_LEAST_PERCENT, *percents))
    room = (most - least) * 0.04
    return shown(least - room), shown(most + room)


def _row(judgement: Judgement, name: str, label: str, least: float, most: float) -> Spec:
    ratio = judgement.change_ratio or 1.0
    low, high = judgement.lower_ratio or ratio, judgement.upper_ratio or ratio
    bounds = f" ({format_ratio(low)} to {format_ratio(high)})" if judgement.lower_ratio else ""

    def place(each: float) -> float:
        return min(max(shown(to_change_percent(each)), least), most)

    row = {"row": label, "outcome": judgement.outcome.value, "change": place(ratio), "low": place(low)}
    row |= {"high": place(high), "tip": f"{name}: {judgement.outcome.value}, {format_ratio(ratio)}{bounds}"}
    if (margin := judgement.margin_ratio) is not None:
        row |= {"margin": place(1.0 + margin), "gain": place(1.0 / (1.0 + margin))}
    if judgement.outcome is Outcome.REGRESSED or place(ratio) in (least, most):
        row["told"] = format_ratio(ratio)
    return row


def _kinds(rows: Sequence[Spec]) -> Spec:
    seen = {each["outcome"] for each in rows}
    return looks("outcome", {each.value: OUTCOME_LOOKS[each] for each in Outcome if each.value in seen})


def _zero_layer(change: Spec) -> Spec:
    encoding = {"x": {"field": "change", **change}, "y": {"value": 0}, "y2": {"value": "height"}}
    return layer("rule", [{"change": 0}], encoding, opacity=0.7)


def _margin_layer(end: str, change: Spec) -> Spec:
    mark = {"type": "tick", "thickness": 1, "size": 12, "opacity": 0.5, "style": "ink"}
    return {"mark": mark, "encoding": {"x": {"field": end, **change}}}


def _change_layers(kinds: Spec, change: Spec) -> Iterator[Spec]:
    bounds = {"x": {"field": "low", **change}, "x2": {"field": "high"}, "color": kinds["color"], "tooltip": tip()}
    yield {"mark": {"type": "rule", "strokeWidth": 4, "opacity": 0.5}, "encoding": bounds}
    points = {"x": {"field": "change", **change}, **kinds, "tooltip": tip()}
    yield {"mark": {"type": "point", "filled": True, "size": 85, "opacity": 1}, "encoding": points}


def _text_layers(rows: Sequence[Spec], change: Spec) -> Iterator[Spec]:
    low, high = change["scale"]["domain"]
    middle = low + (high - low) * _WORDS_RIGHT
    told = [row for row in rows if "told" in row]
    right, left = [row for row in told if row["high"] <= middle], [row for row in told if row["high"] > middle]
    for side, end, align, dx in ((right, "high", "left", 9), (left, "low", "right", -9)):
        if side:
            encoding = {"x": {"field": end, **change}, "text": {"field": "told"}}
            yield layer("text", side, encoding, align=align, dx=dx, fontWeight="bold")
