"""What the figures of all cases have in common; the script fills in the times."""

from __future__ import annotations

from collections.abc import Sequence

from perfsuite.report.page.charts.axes import linear_axis, tip
from perfsuite.report.page.charts.figure import Spec
from perfsuite.report.page.charts.palette import BLUE, GOLD, GREY, PURPLE, VERMILLION

#: Rows, as they are named at the left.
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
