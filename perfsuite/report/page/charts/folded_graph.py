"""What computes what in a phase, the layers folded into one: boxes from the top, with the share of the time of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfsuite.records.observation import Observation, PhaseGraph, RoleNode
from perfsuite.report.graph.layout import Layout, lay_out
from perfsuite.report.page.charts.axes import BLUE, layer, shown, tip
from perfsuite.report.page.charts.figure import Figure, Spec
from perfsuite.report.page.charts.names import readable, short_names
from perfsuite.units import format_count, format_ns, to_percent

#: Pixels of a rank, and half the height and width of a box in ranks and columns.
_STEP, _HALF_HEIGHT, _HALF_WIDTH = 56, 0.3, 0.46
#: Wider boxes would be no easier to read.
_MOST_WIDTH = 720
#: How far lanes are from the boxes and from each other, in columns.
_LANE = 0.13
#: How far beside the middle of a box an edge that takes a lane leaves and enters, and how far from the rank it turns.
_BESIDE, _BETWEEN = 0.28, 0.44
#: Characters of all columns together that a phone has room for.
_CHARACTERS = 46
_LEAST_CHARACTERS = 8
_MOST_TOLD = 3
#: The tint of a box without and with the largest share: words stay readable upon it.
_PALEST, _STRONGEST = 0.05, 0.45


def graph_figures(observation: Observation) -> Iterator[Figure]:
    """Show the folded graph of each phase."""
    for place, graph in enumerate(observation.graphs, start=1):
        if graph.nodes:
            yield _figure(place, graph)


def _figure(place: int, graph: PhaseGraph) -> Figure:
    edges, n_back = _edges(graph)
    whole_ns = sum(each.time_ns for each in graph.nodes) or 1
    longest = sorted(graph.nodes, key=lambda each: -each.time_ns)
    told = [f"{readable(each.role)} {_percent(each.time_ns / whole_ns)}" for each in longest]
    back = f" {format_count(n_back, 'edge')} to the next layer not drawn." if n_back else ""
    return Figure(
        figure_id=f"graph-{place}",
        subject="graph",
        title=f"Graph of {readable(graph.phase)}, layers folded into one",
        summary=f"{format_count(len(graph.nodes), 'role')}, {format_count(len(edges), 'edge')}; "
        f"most time in {', '.join(told[:_MOST_TOLD])}. "
        f"The stronger the tint and the longer the bar in a box, the more time.{back}",
        spec=_spec(graph.nodes, edges, whole_ns),
    )


def _edges(graph: PhaseGraph) -> tuple[list[tuple[int, int]], int]:
    """Return the edges that lead on, and how many lead back: what one layer leaves for the next."""
    numbers = {each.role: number for number, each in enumerate(graph.nodes)}
    known = {
        (numbers[each.source], numbers[each.target])
        for each in graph.edges
        if {each.source, each.target} <= numbers.keys()
    }
    forward = sorted(edge for edge in known if edge[0] < edge[1])
    return forward, len(known) - len(forward)


def _spec(nodes: Sequence[RoleNode], edges: Sequence[tuple[int, int]], whole_ns: int) -> Spec:
    layout = lay_out(len(nodes), edges)
    n_lanes = max(layout.lanes.values(), default=-1) + 1
    half = layout.n_columns / 2
    lanes = (n_lanes + 1) * _LANE if n_lanes else 0.0
    names = short_names((each.role for each in nodes), max(_LEAST_CHARACTERS, _CHARACTERS // max(1, layout.n_columns)))
    boxes = _boxes(nodes, names, layout, whole_ns)
    lines = [point for number, edge in enumerate(edges) for point in _line(number, edge, layout)]
    return {
        "height": _STEP * layout.n_ranks,
        "usermeta": {"mostWidth": _MOST_WIDTH},
        "encoding": {
            "x": _hidden("x", [-half, half + lanes]),
            "y": _hidden("y", [layout.n_ranks - 0.5, -0.5]),
        },
        "layer": [*_edge_layers(lines), *_box_layers(boxes), *_word_layers(boxes)],
    }


def _hidden(field: str, domain: list[float]) -> Spec:
    return {
        "field": field,
        "type": "quantitative",
        "axis": None,
        "scale": {"domain": domain, "nice": False, "zero": False},
    }


def _boxes(nodes: Sequence[RoleNode], names: Sequence[str], layout: Layout, whole_ns: int) -> list[Spec]:
    most_ns = max(each.time_ns for each in nodes) or 1
    return [
        _box(node, name, place, whole_ns, node.time_ns / most_ns)
        for node, name, place in zip(nodes, names, layout.places, strict=True)
    ]


def _box(node: RoleNode, name: str, place: tuple[float, int], whole_ns: int, part: float) -> Spec:
    (column, rank), share = place, _percent(node.time_ns / whole_ns)
    left, right = column - _HALF_WIDTH, column + _HALF_WIDTH
    counted = format_count(node.n_operators, "operator")
    return {
        "x": column,
        "y": rank,
        "left": shown(left),
        "right": shown(right),
        "top": shown(rank - _HALF_HEIGHT),
        "bottom": shown(rank + _HALF_HEIGHT),
        "part": shown(left + (right - left) * part),
        "tint": shown(_PALEST + (_STRONGEST - _PALEST) * part),
        "name": name,
        "share": share,
        "tip": f"{readable(node.role)} ({readable(node.op)}), {counted}: {format_ns(node.time_ns)}, {share}",
    }


def _line(number: int, edge: tuple[int, int], layout: Layout) -> Iterator[Spec]:
    (x, rank), (target_x, target_rank) = layout.places[edge[0]], layout.places[edge[1]]
    if edge in layout.lanes:
        lane_x = layout.widest(rank, target_rank) + _HALF_WIDTH + _LANE * (layout.lanes[edge] + 0.8)
        out_x, in_x = x + _BESIDE, target_x + _BESIDE
        below, above = rank + _BETWEEN, target_rank - _BETWEEN
        points = [(out_x, rank + _HALF_HEIGHT), (out_x, below), (lane_x, below)]
        points += [(lane_x, above), (in_x, above), (in_x, target_rank - _HALF_HEIGHT)]
    else:
        bends = [(bend, rank + step) for step, bend in enumerate(layout.bends.get(edge, ()), start=1)]
        points = [(x, rank + _HALF_HEIGHT), *bends, (target_x, target_rank - _HALF_HEIGHT)]
    last = len(points) - 1
    for step, (point_x, point_y) in enumerate(points):
        place = {"edge": number, "step": step, "x": shown(point_x), "y": shown(point_y)}
        yield {**place, "is_end": True} if step == last else place


def _edge_layers(lines: Sequence[Spec]) -> Iterator[Spec]:
    if not lines:
        return
    order = {"detail": {"field": "edge", "type": "nominal"}, "order": {"field": "step", "type": "quantitative"}}
    yield layer("line", lines, order, strokeWidth=1.2, opacity=0.55, style="ink", strokeJoin="round")
    arrow = {"type": "point", "filled": True, "shape": "triangle-down", "size": 34, "opacity": 0.8, "style": "ink"}
    yield {"data": {"values": [each for each in lines if "is_end" in each]}, "mark": {**arrow, "yOffset": -3}}


def _box_layers(boxes: Sequence[Spec]) -> Iterator[Spec]:
    tint = {"field": "tint", "type": "quantitative", "scale": None, "legend": None}
    left, top, bottom = ({"field": side, "type": "quantitative"} for side in ("left", "top", "bottom"))
    area = {"x": left, "x2": {"field": "right"}, "y": top, "y2": {"field": "bottom"}}
    box = {**area, "fillOpacity": tint, "tooltip": tip()}
    yield layer("rect", boxes, box, color=BLUE, stroke=BLUE, strokeWidth=1, cornerRadius=5)
    bar = {"x": left, "x2": {"field": "part"}, "y": bottom}
    yield layer("rule", boxes, bar, color=BLUE, strokeWidth=4)


def _word_layers(boxes: Sequence[Spec]) -> Iterator[Spec]:
    for field, dy, weight in (("name", -6, "bold"), ("share", 7, "normal")):
        encoding = {"text": {"field": field}, "tooltip": tip()}
        yield layer("text", boxes, encoding, dy=dy, fontSize=10, fontWeight=weight)


def _percent(ratio: float) -> str:
    return f"{to_percent(ratio):.{0 if ratio >= 0.1 else 1}f} %"
