"""Graphs in Graphviz's language, for those who have Graphviz or a viewer that reads it.

*Source*: graphviz.org, The DOT Language: a quoted string ends at a quote without a backslash, and in a label a
backslash begins an escape, so both get a backslash of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfsuite.report.charts.shades import ink_on
from perfsuite.report.graph.picture import colour_of, largest_value
from perfsuite.report.graph.view import DrawnNode, GraphView, graph_words
from perfsuite.trace.timeline.tracks import printable

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
        lines.extend(
            f"    g{number}_n{place} [{_attributes(node, colour_of(node.value, view, most))}]"
            for place, node in enumerate(view.nodes)
        )
        lines.extend(f"    {each}" for each in _edges(view, number))
        lines.append("  }")
    return "\n".join([*lines, "}", ""])


def _attributes(node: DrawnNode, colour: str) -> str:
    fields = [f"label={_quoted(node.lines)}", f'fillcolor="{colour}"', f'fontcolor="{ink_on(colour)}"']
    if node.is_fold:
        fields.append('style="filled,dashed"')
    if node.is_critical:
        fields.append(_CRITICAL)
    return ", ".join(fields)


def _edges(view: GraphView, number: int) -> Iterator[str]:
    for origin, target in view.edges:
        style = f" [{_CRITICAL}]" if (origin, target) in view.critical_edges else ""
        yield f"g{number}_n{origin} -> g{number}_n{target}{style}"


def _quoted(lines: Sequence[str]) -> str:
    escaped = (printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'
