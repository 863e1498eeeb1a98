"""The small figures of single cases: one specification for all, and of each case no more than its times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from perfsuite.records.outcome import Judgement
from perfsuite.report.page.charts.axes import BLUE, GOLD, GREY, PURPLE, VERMILLION, TimeScale, linear_axis, tip
from perfsuite.report.page.charts.figure import Spec
from perfsuite.report.page.charts.runs import run_label
from perfsuite.report.page.page_run import PageRun
from perfsuite.report.run_file import RunFile
from perfsuite.units import format_ns

THIS, BEFORE, BASELINE, OTHERS = "this run", "old side", "baseline", "other runs"

_ROW_COLOURS = {THIS: BLUE, BEFORE: PURPLE, BASELINE: PURPLE, OTHERS: GREY}
_MOST_WIDTH = 720
#: What is drawn across all rows, with its colour and dashes.
_BOUNDS = {"floor": (GREY, [2, 2]), "expected": (GOLD, [6, 3]), "limit": (VERMILLION, [1, 0])}
BOUNDS = tuple(_BOUNDS)


def case_template(unit: str, bounds: Sequence[str]) -> Spec:
    """Return the specification over the named data sets ``times``, ``medians`` and ``bounds``, in one unit."""
    time = {"field": "time", **linear_axis(f"time ({unit})")}
    row = {"field": "row", "type": "nominal", "sort": None, "axis": {"title": None, "grid": True, "domain": False}}
    scale = {"domain": list(_ROW_COLOURS), "range": list(_ROW_COLOURS.values())}
    colour = {"field": "row", "type": "nominal", "scale": scale, "legend": None}
    marks = {"x": time, "y": row, "fill": colour, "tooltip": tip()}
    dot = {"type": "circle", "size": 40, "opacity": 0.5}
    tick = {"type": "tick", "thickness": 3, "size": 22}
    return {
        "usermeta": {"mostWidth": _MOST_WIDTH, "unit": unit},
        "layer": [
            {"data": {"name": "times"}, "mark": dot, "encoding": marks},
            {"data": {"name": "medians"}, "mark": tick, "encoding": marks},
            *_bound_layer(time, bounds),
        ],
    }


def _bound_layer(time: Spec, bounds: Sequence[str]) -> list[Spec]:
    if not bounds:
        return []
    kind = {"field": "what", "type": "nominal", "legend": {"title": None, "symbolType": "stroke", "symbolSize": 200}}
    colours, dashes = zip(*(_BOUNDS[name] for name in bounds), strict=True)
    encoding = {
        "x": time,
        "stroke": {**kind, "scale": {"domain": list(bounds), "range": list(colours)}},
        "strokeDash": {**kind, "scale": {"domain": list(bounds), "range": list(dashes)}},
        "tooltip": tip(),
    }
    return [{"data": {"name": "bounds"}, "mark": {"type": "rule", "strokeWidth": 2}, "encoding": encoding}]


#: A bound farther from the samples than this would press them together: it is told and not drawn.
_FAR = 1.6
_MOST_SAMPLES = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFigures:
    """What the script draws when the details of a case are opened."""

    #: For each judgement of the run, in its order: the key of its figure; None where there is nothing to draw.
    keys: tuple[str | None, ...]
    #: The content of the page's JSON element: ``templates``, each with the ``unit`` of its times, and ``cases`` by key.
    #: A case names its ``template``; it has its ``times`` and ``medians`` by row, and where there are such the medians
    #: of ``others`` by the place of the run in ``runs``, ``bounds`` by name, and in words what is ``beyond`` the axis.
    plain: dict[str, Any]


def case_figures(run: RunFile, others: Sequence[PageRun] = ()) -> CaseFigures:
    """Return the figures of all cases that have samples, beside the same cases of other runs."""
    elsewhere = [{each.case_id: each.measured_ns for each in other.run.judgements} for other in others]
    keys = tuple(f"case-{place}" if each.samples_ns else None for place, each in enumerate(run.judgements))
    templates: dict[str, Spec] = {}
    cases = {
        key: _plain(judgement, templates, [times.get(judgement.case_id) for times in elsewhere])
        for key, judgement in zip(keys, run.judgements, strict=True)
        if key is not None
    }
    return CaseFigures(
        keys=keys,
        plain={
            "templates": templates,
            "cases": cases,
            "runs": [run_label(other.run) for other in others],
            "others": OTHERS,
        },
    )


def _plain(judgement: Judgement, templates: dict[str, Spec], elsewhere: Sequence[int | None]) -> dict[str, Any]:
    samples, old = judgement.samples_ns[:_MOST_SAMPLES], judgement.baseline_samples_ns[:_MOST_SAMPLES]
    old_ns = median(judgement.baseline_samples_ns) if old else judgement.baseline_ns
    others = [(place, time_ns) for place, time_ns in enumerate(elsewhere) if time_ns is not None]
    seen = [*samples, *old, *(time_ns for _, time_ns in others), *filter(None, [old_ns])]
    scale = TimeScale.of([max(samples)])
    drawn = {name: time_ns for name, time_ns in _bounds(judgement) if min(seen) / _FAR <= time_ns <= max(seen) * _FAR}
    beyond = [f"{name} {format_ns(time_ns)}" for name, time_ns in _bounds(judgement) if name not in drawn]
    before = BEFORE if old else BASELINE
    rows: dict[str, Sequence[float]] = {THIS: samples, before: old or tuple(filter(None, [old_ns]))}
    template = " ".join((scale.unit, *drawn))
    if template not in templates:
        templates[template] = case_template(scale.unit, tuple(drawn))
    plain = {
        "template": template,
        "times": {row: [scale(each) for each in times] for row, times in rows.items() if times},
        "medians": {THIS: scale(median(judgement.samples_ns)), **({before: scale(old_ns)} if old_ns else {})},
        "others": [[place, scale(time_ns)] for place, time_ns in others],
        "bounds": {name: scale(time_ns) for name, time_ns in drawn.items()},
        "beyond": f"beyond the axis: {', '.join(beyond)}" if beyond else "",
    }
    return {name: value for name, value in plain.items() if value}


def _bounds(judgement: Judgement) -> Iterator[tuple[str, float]]:
    told = (judgement.floor_ns, judgement.expected_ns, judgement.limit_ns)
    for name, time_ns in zip(BOUNDS, told, strict=True):
        if time_ns:
            yield name, time_ns
