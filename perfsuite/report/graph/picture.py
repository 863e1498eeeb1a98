"""Draws graphs of operators side by side: as SVG, and as DOT for those who have Graphviz or a viewer that reads it.

*Source* of DOT: graphviz.org, The DOT Language: a quoted string ends at a quote without a backslash, and in a label a
backslash begins an escape, so both get a backslash of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from perfsuite.errors import PerfsuiteError
from perfsuite.report.charts.panels import CHARACTER
from perfsuite.report.charts.picture import EDGE, LINE, document, written
from perfsuite.report.charts.svg import cut_middle, ink_on, shade
from perfsuite.report.graph.layout import Layout, lay_out
from perfsuite.report.graph.view import BANDWIDTH, DrawnNode, GraphView, graph_words
from perfsuite.trace.timeline.tracks import printable

#: One operator may take most of the time: shares are told apart by their square roots.
_EXPONENT = 0.5


def largest_value(views: Sequence[GraphView]) -> float:
    """Return the end of the scale, which begins at 0: the largest value that is drawn.

    Raises PerfsuiteError where the graphs do not tell the same of their operators.
    """
    metrics = list(dict.fromkeys(view.metric for view in views))
    if len(metrics) != 1:
        raise PerfsuiteError(f"graphs side by side: metrics are {', '.join(metrics) or 'none'}, expected one for all")
    return max((node.value for view in views for node in view.nodes if node.value is not None), default=0.0) or 1.0


def colour_of(value: float | None, view: GraphView, most: float) -> str:
    """Return the colour of a value as #rrggbb; white of folded layers, and of what was not measured."""
    if value is None:
        return "#ffffff"
    return shade(value / most if view.metric == BANDWIDTH else (value / most) ** _EXPONENT)


#: Pixels: a box, and the distances of boxes from each other.
BOX_WIDTH, BOX_HEIGHT = 210.0, 50.0
_COLUMN, _RANK = 230.0, 75.0
#: Where long edges go down, and how far from boxes they turn.
_LANE, _LANE_GAP = 15.0, 19.0
_LEAVES, _ARRIVES = 6.0, 14.0
_LEAST_WIDTH = 600.0
_BOX_ENDS = (-BOX_HEIGHT / 2, BOX_HEIGHT / 2)

#: To the right and down.
_Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPanel:
    """One graph; its zero is the upper left corner of its boxes."""

    view: GraphView
    layout: Layout
    width: float

    @classmethod
    def of(cls, view: GraphView) -> GraphPanel:
        """Lay a graph out."""
        layout = lay_out(len(view.nodes), view.edges)
        return cls(view=view, layout=layout, width=max(layout.n_columns * _COLUMN + _lanes_width(layout), _LEAST_WIDTH))

    @property
    def height(self) -> float:
        """All ranks."""
        return self.layout.n_ranks * _RANK

    def head(self) -> list[Markup]:
        """Return the graph's name, and what it is."""
        title = cut_middle(self.view.title, int(self.width / CHARACTER))
        parts = [*written(title, 0.0, 0.0, self.width, "strong")]
        for words in graph_words(self.view):
            parts += written(words, 0.0, len(parts) * LINE, self.width)
        return parts

    def middle_of(self, number: int) -> _Point:
        """Return the middle of a box."""
        column, rank = self.layout.places[number]
        return self._x_of(column), (rank + 0.5) * _RANK

    def route(self, edge: tuple[int, int]) -> list[_Point]:
        """Return the points of an edge, from foot to head; a long one turns in the gaps between ranks."""
        (x0, y0), (x1, y1) = map(self.middle_of, edge)
        foot, head = y0 + BOX_HEIGHT / 2, y1 - BOX_HEIGHT / 2
        if edge not in self.layout.lanes:
            passed = enumerate(self.layout.bends.get(edge, ()), start=self.layout.places[edge[0]][1] + 1)
            bends = ((self._x_of(x), (rank + 0.5) * _RANK + y) for rank, x in passed for y in _BOX_ENDS)
            return [(x0, foot), *bends, (x1, head)]
        widest = self.layout.widest(*(self.layout.places[each][1] for each in edge))
        beside = self._x_of(widest) + BOX_WIDTH / 2 + _LANE_GAP + self.layout.lanes[edge] * _LANE
        x0, x1 = x0 + BOX_WIDTH / 3, x1 + BOX_WIDTH / 3
        leaves, arrives = foot + _LEAVES, head - _ARRIVES
        return [(x0, foot), (x0, leaves), (beside, leaves), (beside, arrives), (x1, arrives), (x1, head)]

    def _x_of(self, column: float) -> float:
        return (self.width - _lanes_width(self.layout)) / 2 + column * _COLUMN


def _lanes_width(layout: Layout) -> float:
    n_lanes = max(layout.lanes.values(), default=-1) + 1
    return _LANE_GAP + n_lanes * _LANE if n_lanes else 0.0


def graph_svg(views: Sequence[GraphView]) -> str:
    """Draw graphs side by side under one scale of shades."""
    most = largest_value(views)
    panels = [GraphPanel.of(view) for view in views]
    width = sum(each.width for each in panels)
    scale = (
        f"colour: {views[0].metric_words}, 0 to {most:.3g}, the larger the darker; thick: critical path; "
        "dashed: layers folded into one; numbers: order of execution"
    )
    parts = [*written(scale, EDGE, EDGE, width)]
    top = EDGE + (len(parts) + 0.5) * LINE
    heads = [each.head() for each in panels]
    below = (max(map(len, heads)) + 0.5) * LINE
    left = float(EDGE)
    for panel, head in zip(panels, heads, strict=True):
        body = Markup('<g transform="translate(0 {:g})">{}</g>').format(below, Markup("\n").join(_body(panel, most)))
        drawn = Markup("\n").join([*head, body])
        parts.append(Markup('<g transform="translate({:g} {:g})">{}</g>').format(left, top, drawn))
        left += panel.width
    return document(parts, width + 2 * EDGE, top + below + max(each.height for each in panels) + EDGE)


def _body(panel: GraphPanel, most: float) -> Iterator[Markup]:
    critical = panel.view.critical_edges
    for edge in sorted(panel.view.edges, key=lambda each: each in critical):
        points = "L".join(f"{x:.1f} {y:.1f}" for x, y in panel.route(edge))
        yield Markup('<path class="edge{}" d="M{}"/>').format(" critical" if edge in critical else "", points)
    for number, node in enumerate(panel.view.nodes):
        yield from _box(node, *panel.middle_of(number), colour_of(node.value, panel.view, most))


def _box(node: DrawnNode, x: float, y: float, colour: str) -> Iterator[Markup]:
    looks = ["box", *(["critical"] if node.is_critical else []), *(["fold"] if node.is_fold else [])]
    rect = '<rect class="{}" style="fill:{}" rx="6" x="{:.1f}" y="{:.1f}" width="{:g}" height="{:g}"/>'
    # format escapes what it is given
    yield Markup(rect).format(  # nosec B704
        " ".join(looks), colour, x - BOX_WIDTH / 2, y - BOX_HEIGHT / 2, BOX_WIDTH, BOX_HEIGHT
    )
    for number, line in enumerate(node.lines):
        look, wide = ("small", 0.82 * CHARACTER) if number else ("name", CHARACTER)
        line_y = y + 4.0 + (number - (len(node.lines) - 1) / 2) * 15.0
        yield Markup('<text class="middle {}" style="fill:{}" x="{:.1f}" y="{:.1f}">{}</text>').format(
            look, ink_on(colour), x, line_y, cut_middle(line, int(BOX_WIDTH / wide))
        )


_CRITICAL = 'color="#d55e00", penwidth=2.5'


def dot_text(views: Sequence[GraphView]) -> str:
    """Return graphs side by side as DOT, each a cluster."""
    lines = ["digraph operators {", '  graph [rankdir="TB", fontname="sans-serif", labelloc="t", nodesep=0.2]']
    lines.append('  node [shape="box", style="filled", fontname="sans-serif", fontsize=10, margin="0.1,0.05"]')
    lines.append('  edge [color="#777777", arrowsize=0.6]')
    most = largest_value(views)
    for number, view in enumerate(views):
        lines.append(f"  subgraph cluster_{number} {{")
        lines.append(f"    label={_quoted((view.title, *graph_words(view), f'colour: {view.metric_words}'))}")
        lines.append('    color="#FFFFFF"')
        for place, node in enumerate(view.nodes):
            lines.append(f"    g{number}_n{place} [{_attributes(node, colour_of(node.value, view, most))}]")
        for origin, target in view.edges:
            style = f" [{_CRITICAL}]" if (origin, target) in view.critical_edges else ""
            lines.append(f"    g{number}_n{origin} -> g{number}_n{target}{style}")
        lines.append("  }")
    return "\n".join([*lines, "}", ""])


def _attributes(node: DrawnNode, colour: str) -> str:
    fields = [f"label={_quoted(node.lines)}", f'fillcolor="{colour}"', f'fontcolor="{ink_on(colour)}"']
    return ", ".join([*fields, *(['style="filled,dashed"'] * node.is_fold), *([_CRITICAL] * node.is_critical)])


def _quoted(lines: Sequence[str]) -> str:
    escaped = (printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'
