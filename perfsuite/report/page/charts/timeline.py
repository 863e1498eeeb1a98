"""When which operator ran: one occurrence of each phase, a lane for each role."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from perfsuite.records.observation import Observation, OperatorSpan, PhaseTimeline
from perfsuite.report.page.charts.axes import BLUE, NUMBERS, TimeScale, row_axis, tip
from perfsuite.report.page.charts.figure import Figure, Spec
from perfsuite.report.page.charts.names import readable, short_names
from perfsuite.units import format_count, format_ns, to_percent

_MOST_LANES, _MOST_TOLD, _STEP = 16, 3, 20
#: Rectangles that a browser draws without a wait.
_MOST_BARS = 1500
#: Gaps that are closed first where there are more, as a part of the phase.
_LEAST_GAP = 1 / 2000
_OTHERS = "all others"
_LANE_CHARACTERS = 17


def timeline_figures(observation: Observation) -> Iterator[Figure]:
    """Show the operators of each recorded phase in the order of time."""
    for place, timeline in enumerate(observation.timelines, start=1):
        if timeline.operators and timeline.duration_ns > 0:
            yield _figure(place, timeline)


def _figure(place: int, timeline: PhaseTimeline) -> Figure:
    lanes = _lanes(timeline.operators)
    bars = {lane: _merged(spans, 0) for lane, spans in lanes.items()}
    gap_ns = round(timeline.duration_ns * _LEAST_GAP)
    is_merged = False
    while sum(map(len, bars.values())) > _MOST_BARS:
        is_merged, gap_ns = True, gap_ns * 2 + 1
        bars = {lane: _merged(spans, gap_ns) for lane, spans in lanes.items()}
    times = {lane: sum(each.duration_ns for each in spans) for lane, spans in lanes.items()}
    told = [f"{readable(lane)} {_percent(time, timeline.duration_ns)}" for lane, time in times.items()]
    merged = f" Operators of a lane less than {format_ns(gap_ns)} apart are drawn as one." if is_merged else ""
    is_step = timeline.phase == "decode" and timeline.n_tokens == 1
    what = "decode step" if is_step else readable(timeline.phase)
    return Figure(
        figure_id=f"timeline-{place}",
        subject="timeline",
        title=f"Operators over time, one {what}",
        summary=f"{format_count(len(timeline.operators), 'operator')} in {format_ns(timeline.duration_ns)}, "
        f"{format_count(timeline.n_tokens, 'token')}: {', '.join(told[:_MOST_TOLD])}. "
        f"A lane holds one role in all layers, dark and pale by turns; the most expensive is at the top.{merged}",
        spec=_spec(timeline, bars, times),
    )


def _lanes(operators: Sequence[OperatorSpan]) -> dict[str, list[OperatorSpan]]:
    """Return the operators by role, the most expensive role first; the cheapest share a lane."""
    by_role: defaultdict[str, list[OperatorSpan]] = defaultdict(list)
    for each in operators:
        by_role[each.role].append(each)
    ordered = sorted(by_role, key=lambda role: -sum(each.duration_ns for each in by_role[role]))
    lanes = {role: by_role[role] for role in ordered[:_MOST_LANES]}
    if rest := [each for each in operators if each.role not in lanes]:
        lanes[_OTHERS] = [*lanes.get(_OTHERS, []), *rest]
    return lanes


def _merged(spans: Sequence[OperatorSpan], gap_ns: int) -> list[Spec]:
    """Return bars from start to end with what they tell; those closer together than the gap are one."""
    bars: list[Spec] = []
    for each in sorted(spans, key=lambda span: span.start_ns):
        end_ns = each.start_ns + each.duration_ns
        if gap_ns and bars and each.start_ns - bars[-1]["to"] < gap_ns:
            bars[-1] |= {"to": max(end_ns, bars[-1]["to"]), "n": bars[-1]["n"] + 1}
        else:
            bars.append({"from": each.start_ns, "to": end_ns, "n": 1, "span": each})
    return bars


def _spec(timeline: PhaseTimeline, bars: dict[str, list[Spec]], times: dict[str, int]) -> Spec:
    scale = TimeScale.of([timeline.duration_ns])
    shares = [_percent(times[lane], timeline.duration_ns) for lane in bars]
    labels = [f"{lane} {share}" for lane, share in zip(short_names(bars, _LANE_CHARACTERS), shares, strict=True)]
    values = [_bar(label, each, scale) for label, lane in zip(labels, bars, strict=True) for each in bars[lane]]
    axis = {"title": scale.title("time in the phase"), "format": NUMBERS, "tickCount": 6}
    time = {"type": "quantitative", "scale": {"domain": [0, scale(timeline.duration_ns)], "nice": False}, "axis": axis}
    shade = {"field": "shade", "type": "quantitative", "scale": None, "legend": None}
    return {
        "height": _STEP * len(labels),
        "data": {"values": values},
        "mark": {"type": "bar", "height": _STEP - 6, "fill": BLUE, "stroke": BLUE, "strokeWidth": 0.5, "clip": True},
        "encoding": {
            "y": row_axis(labels),
            "x": {"field": "from", **time},
            "x2": {"field": "to"},
            "opacity": shade,
            "tooltip": tip(),
        },
    }


def _bar(label: str, bar: Spec, scale: TimeScale) -> Spec:
    span: OperatorSpan = bar["span"]
    layer = "" if span.layer is None else f", layer {span.layer}"
    told = f"{readable(span.role)} ({readable(span.op)}){layer}: {format_ns(span.duration_ns)}"
    if bar["n"] > 1:
        many = format_count(bar["n"], "operator")
        told = f"{many} from {readable(span.role)}{layer} on: {format_ns(bar['to'] - bar['from'])}"
    shade = 1 if (span.layer or 0) % 2 == 0 else 0.6
    return {"row": label, "from": scale(bar["from"]), "to": scale(bar["to"]), "shade": shade, "tip": told}


def _percent(part_ns: float, whole_ns: float) -> str:
    share = to_percent(part_ns / whole_ns)
    return f"{share:.0f} %" if share >= 1.0 else "<1 %"
