"""Graphs on the terminal: operators by role, siblings, and two graphs side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.markup import escape
from rich.table import Column, Table

from perfsuite.report.graph.roles import role_totals, sibling_totals
from perfsuite.report.graph.view import GraphView, graph_words
from perfsuite.trace.timeline.tracks import printable
from perfsuite.units import format_bytes, format_bytes_per_s, format_change, format_ns

N_TOP = 15


def graph_tables(views: Sequence[GraphView], n_top: int = N_TOP) -> Iterator[str | Table]:
    """Yield of each graph what it is, its operators by role and its siblings; then several graphs side by side."""
    for view in views:
        yield view.title
        yield from (f"  {line}" for line in graph_words(view))
        yield role_table(view, n_top)
        if view.graph.siblings:
            yield sibling_table(view, n_top)
    if len(views) > 1:
        yield comparison_table(views, n_top)


def comparison_table(views: Sequence[GraphView], n_top: int = N_TOP) -> Table:
    """Show several graphs side by side, role by role, with the change from the first one."""
    totals = [{(each.role, each.op): each for each in role_totals(view.graph)} for view in views]
    columns = [Column("operators", overflow="fold")]
    for number, view in enumerate(views):
        columns += [Column(escape(view.title), justify="right", overflow="fold"), Column("n", justify="right")]
        columns += [Column("change", justify="right")] if number else []
    table = _table("Side by side", *columns)
    _add_wholes(table, views)
    keys = list(dict.fromkeys(key for each in totals for key in each))
    keys.sort(key=lambda key: -max((each[key].time_ns or 0.0) if key in each else 0.0 for each in totals))
    for key in keys[:n_top]:
        cells = []
        for number, each in enumerate(totals):
            own = each.get(key)
            cells += [format_ns(own.time_ns if own else None), str(own.n) if own else "-"]
            old_ns, new_ns = (side.time_ns if side else None for side in (totals[0].get(key), own))
            cells += [_ratio(old_ns, new_ns)] if number else []
        table.add_row(escape(printable(f"{key[0]} {key[1]}")), *cells)
    return table


def _add_wholes(table: Table, views: Sequence[GraphView]) -> None:
    first = views[0].graph
    serial, critical, weights = [], [], []
    for number, view in enumerate(views):
        graph = view.graph
        serial += [format_ns(graph.serial_ns or None), str(len(graph.operators))]
        critical += [format_ns(graph.critical_ns or None), str(len(graph.critical))]
        weights += [format_bytes(graph.constants.weights_bytes), str(graph.constants.n_weights)]
        if number:
            serial.append(_ratio(first.serial_ns, graph.serial_ns or None))
            critical.append(_ratio(first.critical_ns, graph.critical_ns or None))
            weights.append(_ratio(first.constants.weights_bytes, graph.constants.weights_bytes))
    table.add_row("all operators", *serial)
    table.add_row("critical path", *critical)
    table.add_row("weights", *weights, end_section=True)


def _ratio(old: float | None, new: float | None) -> str:
    return format_change(new / old if old and new is not None else None)


def role_table(view: GraphView, n_top: int = N_TOP) -> Table:
    """Show operators by role, the longest first."""
    graph = view.graph
    totals = role_totals(graph)
    top = f": the {n_top} of {len(totals)} roles that take the longest" if len(totals) > n_top else " by role"
    names = ("operation", "n", "critical", "time", "share", "bandwidth", *map(printable, graph.counter_names))
    columns = (Column(escape(each), justify="right" if number else "left") for number, each in enumerate(names))
    table = _table(f"Operators{top}", Column("role", overflow="fold"), *columns)
    for each in totals[:n_top]:
        table.add_row(
            escape(printable(each.role)),
            escape(printable(each.op)),
            str(each.n),
            str(each.n_critical),
            format_ns(each.time_ns),
            "-" if each.share_ratio is None else f"{each.share_ratio:.1%}",
            "-" if each.bytes_per_s is None else format_bytes_per_s(each.bytes_per_s),
            *("-" if count is None else f"{count:,.0f}" for count in each.counters),
        )
    return table


def sibling_table(view: GraphView, n_top: int = N_TOP) -> Table:
    """Show operators that could run side by side, those that would save the most first."""
    table = _table(
        "Siblings: operators that share an input and run one after the other",
        Column("shared", overflow="fold"),
        Column("operators", overflow="fold"),
        *(Column(each, justify="right") for each in ("groups", "time", "saves at most", "of all")),
    )
    for each in sibling_totals(view.graph)[:n_top]:
        table.add_row(
            escape(printable(each.shared)),
            escape(printable(", ".join(each.roles))),
            str(each.n),
            format_ns(each.time_ns),
            format_ns(each.saving_ns),
            f"{each.saving_ns / view.graph.serial_ns:.1%}" if view.graph.serial_ns else "-",
        )
    return table


def _table(title: str, *columns: Column) -> Table:
    return Table(*columns, title=title, title_justify="left", box=None, pad_edge=False)
