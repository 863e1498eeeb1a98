"""Draws graphs of operators side by side, in inches: boxes from the top, edges, a head, and one scale of colours.

A graph in Graphviz's language, for those who have Graphviz or a viewer that reads it.

*Source*: graphviz.org, The DOT Language: a quoted string ends at a quote without a backslash, and in a label a
backslash begins an escape, so both get a backslash of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

import matplotlib
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, PowerNorm, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path as Line

from perfsuite.errors import PerfsuiteError
from perfsuite.records.whole_file import write_whole_bytes
from perfsuite.report.graph.layout import Layout, lay_out
from perfsuite.report.graph.view import BANDWIDTH, DrawnNode, GraphView, graph_words
from perfsuite.report.plots.formats import format_of
from perfsuite.report.plots.picture import figure_bytes
from perfsuite.report.plots.style import DOTS_PER_INCH, REFERENCE_COLOUR, SETTINGS, ink_on
from perfsuite.trace.timeline.tracks import printable

#: Evenly darker, and told apart by people of any colour vision. *Source*: Nuñez, Anderton and Renslow, Optimizing
#: colormaps with consideration for color vision deficiency, PLOS ONE 13 (7), 2018.
COLOUR_MAP = matplotlib.colormaps["cividis_r"]
#: What has no value: folded layers, and what was not measured.
PLAIN = "#FFFFFF"
#: One operator may take most of the time: shares are told apart by their square roots.
_EXPONENT = 0.5


def scale_of(views: Sequence[GraphView]) -> Normalize:
    """Return the scale from 0 to the largest value that is drawn.

    Raises PerfsuiteError where the graphs do not tell the same of their operators.
    """
    metrics = list(dict.fromkeys(view.metric for view in views))
    if len(metrics) != 1:
        raise PerfsuiteError(f"graphs side by side: metrics are {', '.join(metrics) or 'none'}, expected one for all")
    values = [node.value for view in views for node in view.nodes if node.value is not None]
    most = max(values, default=0.0) or 1.0
    return Normalize(0.0, most) if metrics == [BANDWIDTH] else PowerNorm(_EXPONENT, 0.0, most)


def colour_of(value: float | None, scale: Normalize) -> str:
    """Return the colour of a value as #RRGGBB."""
    return PLAIN if value is None else to_hex(COLOUR_MAP(float(scale(value))))


#: Inches: a box, a line of the head, and the distances of boxes from each other.
BOX_WIDTH, BOX_HEIGHT = 2.2, 0.52
LINE_HEIGHT = 0.19
_COLUMN, _RANK = 2.4, 0.78
#: Where long edges go down, and how far from boxes they turn.
_LANE, _LANE_GAP = 0.16, 0.2
_LEAVES, _ARRIVES = 0.06, 0.15
_LEAST_WIDTH, _BELOW_HEAD = 6.2, 0.2
#: Characters of the title and of another line of the head for each inch.
_TITLE_CHARACTERS, _HEAD_CHARACTERS = 10.0, 15.5

#: To the right and down.
Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPanel:
    """One graph; its zero is the upper left corner of its boxes."""

    view: GraphView
    layout: Layout
    head: tuple[str, ...]
    width: float

    @property
    def head_height(self) -> float:
        """All lines, and what is free below them."""
        return len(self.head) * LINE_HEIGHT + _BELOW_HEAD

    @property
    def body_height(self) -> float:
        """All ranks."""
        return self.layout.n_ranks * _RANK

    def middle_of(self, number: int) -> Point:
        """Return the middle of a box."""
        column, rank = self.layout.places[number]
        return self._x_of(column), self._y_of(rank)

    def route(self, edge: tuple[int, int]) -> list[Point]:
        """Return the points of an edge, from foot to head."""
        if edge in self.layout.lanes:
            return self._route_by_lane(edge)
        first = self.layout.places[edge[0]][1] + 1
        bends = []
        for rank, column in enumerate(self.layout.bends.get(edge, ()), start=first):
            x, y = self._x_of(column), self._y_of(rank)
            bends += [(x, y - BOX_HEIGHT / 2), (x, y + BOX_HEIGHT / 2)]
        (x0, y0), (x1, y1) = map(self.middle_of, edge)
        return [(x0, y0 + BOX_HEIGHT / 2), *bends, (x1, y1 - BOX_HEIGHT / 2)]

    def _route_by_lane(self, edge: tuple[int, int]) -> list[Point]:
        """Return the points of a long edge: it turns in the gaps between ranks, where no boxes are."""
        (x0, y0), (x1, y1) = map(self.middle_of, edge)
        widest = self.layout.widest(*(self.layout.places[each][1] for each in edge))
        beside = self._x_of(widest) + BOX_WIDTH / 2 + _LANE_GAP + self.layout.lanes[edge] * _LANE
        x0, x1 = x0 + BOX_WIDTH / 3, x1 + BOX_WIDTH / 3
        foot, head = y0 + BOX_HEIGHT / 2, y1 - BOX_HEIGHT / 2
        leaves, arrives = foot + _LEAVES, head - _ARRIVES
        return [(x0, foot), (x0, leaves), (beside, leaves), (beside, arrives), (x1, arrives), (x1, head)]

    def _x_of(self, column: float) -> float:
        return (self.width - _lanes_width(self.layout)) / 2 + column * _COLUMN

    @staticmethod
    def _y_of(rank: int) -> float:
        return (rank + 0.5) * _RANK


def graph_panel(view: GraphView) -> GraphPanel:
    """Lay a graph out."""
    layout = lay_out(len(view.nodes), view.edges)
    width = max(layout.n_columns * _COLUMN + _lanes_width(layout), _LEAST_WIDTH)
    words = [line for each in graph_words(view) for line in wrap(each, int(width * _HEAD_CHARACTERS))]
    title = cut_middle(view.title, int(width * _TITLE_CHARACTERS))
    return GraphPanel(view=view, layout=layout, head=(title, *words), width=width)


def cut_middle(text: str, most: int) -> str:
    """Cut a text to so many characters in its middle, where there is the least to lose."""
    kept = (most - 1) // 2
    return text if len(text) <= most else f"{text[:kept]}…{text[-kept:]}"


def _lanes_width(layout: Layout) -> float:
    n_lanes = max(layout.lanes.values(), default=-1) + 1
    return _LANE_GAP + n_lanes * _LANE if n_lanes else 0.0


#: Inches: around all, and for the scale of colours above all.
_MARGIN, _SCALE = 0.3, 0.75
#: Characters of a name and of a line below it in a box.
_NAME_CHARACTERS, _BOX_CHARACTERS = 31, 42
#: Evenly along the scale there is a number at each of these steps.
_N_STEPS = 4
_FAINT = "#444444"
#: The most dots that a side of a PNG can have.
_MOST_DOTS = 60_000


def write_graph_picture(views: Sequence[GraphView], path: Path) -> None:
    """Draw graphs side by side into a file, SVG or PNG by its suffix.

    Raises PerfsuiteError where the suffix is of no known format, the graph is too large for a PNG, or the file cannot
    be written.
    """
    file_format = format_of(path)
    with style.context(["default", SETTINGS]):
        figure = draw_graphs(views)
        if file_format == "png" and max(figure.get_size_inches()) * DOTS_PER_INCH > _MOST_DOTS:
            raise PerfsuiteError(f"{path}: the graph is too large for a PNG; write an SVG, or show fewer layers")
        content = figure_bytes(figure, file_format)
    write_whole_bytes(path, content, PerfsuiteError)


def draw_graphs(views: Sequence[GraphView]) -> Figure:
    """Draw graphs side by side under one scale of colours."""
    panels = [graph_panel(view) for view in views]
    width = sum(each.width for each in panels) + 2 * _MARGIN
    head_height = max(each.head_height for each in panels)
    height = 2 * _MARGIN + _SCALE + head_height + max(each.body_height for each in panels)
    figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH, facecolor="white")
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0.0, width), ylim=(height, 0.0))
    axes.set_axis_off()
    scale = scale_of(views)
    left = _MARGIN
    for panel in panels:
        _draw_head(axes, panel, left, _MARGIN + _SCALE)
        _draw_body(axes, panel, left, _MARGIN + _SCALE + head_height, scale)
        left += panel.width
    _draw_scale(figure, axes, scale, views[0].metric_words)
    return figure


def _draw_head(axes: Axes, panel: GraphPanel, left: float, top: float) -> None:
    for number, line in enumerate(panel.head):
        weight, size, colour = ("bold", 10.5, "black") if number == 0 else ("normal", 8.5, _FAINT)
        look: dict[str, Any] = {"fontweight": weight, "fontsize": size, "color": colour}
        _write(axes, left, top + number * LINE_HEIGHT, line, ha="left", va="top", **look)


def _draw_body(axes: Axes, panel: GraphPanel, left: float, top: float, scale: Normalize) -> None:
    critical = panel.view.critical_edges
    for edge in sorted(panel.view.edges, key=lambda each: each in critical):
        _draw_edge(axes, [(left + x, top + y) for x, y in panel.route(edge)], edge in critical)
    for number, node in enumerate(panel.view.nodes):
        x, y = panel.middle_of(number)
        _draw_box(axes, node, left + x, top + y, colour_of(node.value, scale))


def _draw_edge(axes: Axes, points: list[tuple[float, float]], is_critical: bool) -> None:
    look: dict[str, Any] = (
        {"color": REFERENCE_COLOUR, "linewidth": 2.2} if is_critical else {"color": "#777777", "linewidth": 0.9}
    )
    ends: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 9.0, "shrinkA": 0.0, "shrinkB": 0.0}
    axes.add_patch(FancyArrowPatch(path=Line(points), joinstyle="round", fill=True, **ends, **look))


def _draw_box(axes: Axes, node: DrawnNode, x: float, y: float, colour: str) -> None:
    edge, width = (REFERENCE_COLOUR, 2.2) if node.is_critical else ("#555555", 0.8)
    corner = (x - BOX_WIDTH / 2, y - BOX_HEIGHT / 2)
    look: dict[str, Any] = {"boxstyle": "round,pad=0,rounding_size=0.06", "linestyle": "--" if node.is_fold else "-"}
    axes.add_patch(
        FancyBboxPatch(corner, BOX_WIDTH, BOX_HEIGHT, facecolor=colour, edgecolor=edge, linewidth=width, **look)
    )
    ink = ink_on(to_rgb(colour))
    for number, line in enumerate(node.lines):
        most, size, weight = (_BOX_CHARACTERS, 6.5, "normal") if number else (_NAME_CHARACTERS, 7.5, "bold")
        line_y = y + (number - (len(node.lines) - 1) / 2) * 0.155
        look = {"fontsize": size, "fontweight": weight, "color": ink}
        _write(axes, x, line_y, cut_middle(line, most), ha="center", va="center_baseline", **look)


def _write(axes: Axes, x: float, y: float, text: str, **looks: Any) -> None:
    """Write a text as it is: a dollar sign begins no formula."""
    axes.text(x, y, text, parse_math=False, **looks)


def _draw_scale(figure: Figure, axes: Axes, scale: Normalize, words: str) -> None:
    width, height = figure.get_size_inches()
    across = min(2.6, width - 2 * _MARGIN)
    bar = figure.add_axes((_MARGIN / width, 1.0 - (_MARGIN + 0.32) / height, across / width, 0.13 / height))
    ticks = [float(scale.inverse(step / _N_STEPS)) for step in range(_N_STEPS + 1)]
    shown = figure.colorbar(ScalarMappable(scale, COLOUR_MAP), cax=bar, orientation="horizontal", ticks=ticks)
    shown.set_ticklabels(
        [f"{tick:.3g}" if tick >= 1e6 else f"{tick:,.0f}" if tick >= 100 else f"{tick:.2g}" for tick in ticks]
    )
    bar.tick_params(labelsize=7, length=2)
    look: dict[str, Any] = {"fontsize": 8, "va": "center", "ha": "left", "color": _FAINT}
    _write(axes, _MARGIN, _MARGIN + 0.08, f"colour: {words}", **look)
    beside = _MARGIN + across + 0.3
    axes.plot([beside, beside + 0.4], [_MARGIN + 0.26] * 2, color=REFERENCE_COLOUR, linewidth=2.2)
    told = "critical path; dashed: layers folded into one; numbers: order of execution"
    _write(axes, beside + 0.5, _MARGIN + 0.26, told, **look)


def write_dot(views: Sequence[GraphView], path: Path) -> None:
    """Write graphs side by side as DOT.

    Raises PerfsuiteError where the file cannot be written; what was there before stays.
    """
    write_whole_bytes(path, dot_text(views).encode("utf-8"), PerfsuiteError)


def dot_text(views: Sequence[GraphView]) -> str:
    """Return graphs side by side as DOT, each a cluster."""
    lines = ["digraph operators {", '  graph [rankdir="TB", fontname="sans-serif", labelloc="t", nodesep=0.2]']
    lines.append('  node [shape="box", style="filled", fontname="sans-serif", fontsize=10, margin="0.1,0.05"]')
    lines.append('  edge [color="#777777", arrowsize=0.6]')
    scale = scale_of(views)
    for number, view in enumerate(views):
        lines.append(f"  subgraph cluster_{number} {{")
        lines.append(f"    label={_quoted((view.title, *graph_words(view), f'colour: {view.metric_words}'))}")
        lines.append('    color="#FFFFFF"')
        lines.extend(
            f"    g{number}_n{place} [{_attributes(node, colour_of(node.value, scale))}]"
            for place, node in enumerate(view.nodes)
        )
        lines.extend(f"    {each}" for each in _edges(view, number))
        lines.append("  }")
    return "\n".join([*lines, "}", ""])


def _attributes(node: DrawnNode, colour: str) -> str:
    fields = [f"label={_quoted(node.lines)}", f'fillcolor="{colour}"', f'fontcolor="{ink_on(to_rgb(colour))}"']
    if node.is_fold:
        fields.append('style="filled,dashed"')
    if node.is_critical:
        fields += [f'color="{REFERENCE_COLOUR}"', "penwidth=2.5"]
    return ", ".join(fields)


def _edges(view: GraphView, number: int) -> Iterator[str]:
    for origin, target in view.edges:
        style = f' [color="{REFERENCE_COLOUR}", penwidth=2.5]' if (origin, target) in view.critical_edges else ""
        yield f"g{number}_n{origin} -> g{number}_n{target}{style}"


def _quoted(lines: Sequence[str]) -> str:
    escaped = (printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'
