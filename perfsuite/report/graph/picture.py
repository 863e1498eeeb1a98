"""Draws graphs of operators side by side, in inches: boxes from the top, edges, a head, and one scale of colours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path as Line

from perfsuite.errors import PerfsuiteError
from perfsuite.records.whole_file import write_whole_bytes
from perfsuite.report.graph.colours import COLOUR_MAP, colour_of, scale_of
from perfsuite.report.graph.panel import BOX_HEIGHT, BOX_WIDTH, LINE_HEIGHT, GraphPanel, cut_middle, graph_panel
from perfsuite.report.graph.view import DrawnNode, GraphView
from perfsuite.report.plots.formats import format_of
from perfsuite.report.plots.picture import figure_bytes
from perfsuite.report.plots.style import DOTS_PER_INCH, REFERENCE_COLOUR, SETTINGS, ink_on

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
