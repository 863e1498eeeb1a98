"""Graphs on the terminal and as JSON: operators by role, siblings, and graphs side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from perfsuite.records.codec import plain_fields
from perfsuite.report.graph.view import GraphView, graph_words, layers_of
from perfsuite.report.sheet import Sheet
from perfsuite.trace.graph.edges import Siblings
from perfsuite.trace.graph.operators import OperatorGraph
from perfsuite.trace.timeline.tracks import printable
from perfsuite.units import NS_PER_S, format_bytes, format_bytes_per_s, format_change, format_ns

N_TOP = 15

#: Raised whenever a key of the JSON changes its meaning.
SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleTotals:
    """Operators of one role."""

    role: str
    op: str
    n: int
    n_critical: int
    #: Sums; None where no operator of the role has one.
    time_ns: float | None
    #: Of the serial sum; None where no time is known.
    share_ratio: float | None
    #: Bytes of those with a time over their time.
    bytes_per_s: float | None
    counters: dict[str, float | None]


def role_totals(graph: OperatorGraph) -> tuple[RoleTotals, ...]:
    """Sum operators by role, the one that takes the longest first."""
    members: dict[tuple[str, str], list[int]] = {}
    for number, each in enumerate(graph.operators):
        members.setdefault((each.role, each.op), []).append(number)
    totals = [_totals(graph, role, op, numbers) for (role, op), numbers in members.items()]
    return tuple(sorted(totals, key=lambda each: -(each.time_ns or 0.0)))


def _totals(graph: OperatorGraph, role: str, op: str, numbers: Sequence[int]) -> RoleTotals:
    timed = [each for number in numbers if (each := graph.operators[number]).time_ns is not None]
    time_ns = sum(each.time_ns or 0.0 for each in timed)
    n_bytes = _sum([each.n_bytes for each in timed])
    critical = set(graph.critical)
    return RoleTotals(
        role=role or op,
        op=op,
        n=len(numbers),
        n_critical=sum(number in critical for number in numbers),
        time_ns=time_ns if timed else None,
        share_ratio=time_ns / graph.serial_ns if timed and graph.serial_ns else None,
        bytes_per_s=n_bytes * NS_PER_S / time_ns if time_ns and n_bytes is not None else None,
        counters={name: _sum([each.counters[at] for each in timed]) for at, name in enumerate(graph.counter_names)},
    )


def _sum(values: Sequence[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return sum(known) if known and len(known) == len(values) else None


def sibling_groups(graph: OperatorGraph) -> dict[tuple[str, tuple[str, ...]], list[Siblings]]:
    """Return siblings by the roles of what they share and of themselves, those that would save the most first."""

    def role(number: int) -> str:
        return graph.operators[number].role or graph.operators[number].op

    groups: dict[tuple[str, tuple[str, ...]], list[Siblings]] = {}
    for each in graph.siblings:
        groups.setdefault((role(each.shared), tuple(map(role, each.members))), []).append(each)
    return dict(sorted(groups.items(), key=lambda item: -sum(each.saving_ns for each in item[1])))


def graph_tables(views: Sequence[GraphView], n_top: int = N_TOP) -> Iterator[str | Sheet]:
    """Yield of each graph what it is, its operators by role and its siblings; then several graphs side by side."""
    for view in views:
        yield view.title
        yield from (f"  {line}" for line in graph_words(view))
        yield role_table(view, n_top)
        if view.graph.siblings:
            yield sibling_table(view, n_top)
    if len(views) > 1:
        yield comparison_table(views, n_top)


def role_table(view: GraphView, n_top: int = N_TOP) -> Sheet:
    """Show operators by role, the longest first."""
    totals = role_totals(view.graph)
    top = f": the {n_top} of {len(totals)} roles that take the longest" if len(totals) > n_top else " by role"
    names = ("operation", ">n", ">critical", ">time", ">share", ">bandwidth")
    return Sheet(
        ("role", *names, *(f">{printable(each)}" for each in view.graph.counter_names)),
        [
            (
                *(printable(each.role), printable(each.op), each.n, each.n_critical, format_ns(each.time_ns)),
                _percent(each.share_ratio),
                None if each.bytes_per_s is None else format_bytes_per_s(each.bytes_per_s),
                *(None if count is None else f"{count:,.0f}" for count in each.counters.values()),
            )
            for each in totals[:n_top]
        ],
        f"Operators{top}",
    )


def sibling_table(view: GraphView, n_top: int = N_TOP) -> Sheet:
    """Show operators that could run side by side, those that would save the most first."""
    rows = []
    for (shared, roles), groups in list(sibling_groups(view.graph).items())[:n_top]:
        time_ns, saving_ns = sum(each.time_ns for each in groups), sum(each.saving_ns for each in groups)
        share = saving_ns / view.graph.serial_ns if view.graph.serial_ns else None
        names = printable(shared), printable(", ".join(roles))
        rows.append((*names, len(groups), format_ns(time_ns), format_ns(saving_ns), _percent(share)))
    return Sheet(
        ("shared", "operators", ">groups", ">time", ">saves at most", ">of all"),
        rows,
        "Siblings: operators that share an input and run one after the other",
    )


def comparison_table(views: Sequence[GraphView], n_top: int = N_TOP) -> Sheet:
    """Show several graphs side by side, role by role, with the change from the first one."""
    totals = [{(each.role, each.op): each for each in role_totals(view.graph)} for view in views]
    keys = list(dict.fromkeys(key for each in totals for key in each))
    keys.sort(key=lambda key: -max((each[key].time_ns or 0.0) if key in each else 0.0 for each in totals))
    headings = ["operators"]
    for number, view in enumerate(views):
        headings += [f">{view.title}", ">n", *([">change"] if number else [])]
    rows = list(_wholes([view.graph for view in views]))
    for role, op in keys[:n_top]:
        sides = (each.get((role, op)) for each in totals)
        times: list[_Side] = [
            (each.time_ns, format_ns(each.time_ns), each.n) if each else (None, "-", None) for each in sides
        ]
        rows.append((printable(f"{role} {op}"), times))
    return Sheet(headings, [[name, *_cells(sides)] for name, sides in rows], "Side by side")


#: Of one graph: a value that is compared with that of the first one, its text, and a number of operators or weights.
_Side = tuple[float | None, str, int | None]


def _wholes(graphs: Sequence[OperatorGraph]) -> Iterator[tuple[str, list[_Side]]]:
    yield "all operators", [(ns := each.serial_ns or None, format_ns(ns), len(each.operators)) for each in graphs]
    yield "critical path", [(ns := each.critical_ns or None, format_ns(ns), len(each.critical)) for each in graphs]
    constants = [each.constants for each in graphs]
    yield "weights", [(each.weights_bytes, format_bytes(each.weights_bytes), each.n_weights) for each in constants]


def _cells(sides: Sequence[_Side]) -> Iterator[object]:
    old = sides[0][0]
    for number, (value, text, n) in enumerate(sides):
        yield from (text, n)
        if number:
            yield format_change(value / old if old and value is not None else None)


def _percent(ratio: float | None) -> str | None:
    return None if ratio is None else f"{ratio:.1%}"


_NODE = (
    *("name", "role", "op", "type", "shape", "backend"),
    *("n_evaluations", "start_ns", "time_ns", "bytes_per_s"),
)


def plain_graphs(views: Sequence[GraphView]) -> dict[str, Any]:
    """Return graphs in the order in which they were asked for."""
    return {"schema": SCHEMA, "graphs": [plain_graph(view) for view in views]}


def plain_graph(view: GraphView) -> dict[str, Any]:
    """Return a whole graph, however much of it is drawn; numbers of nodes are their order of execution."""
    graph = view.graph
    constants = graph.constants
    return {
        "title": view.title,
        "graph": graph.number,
        **plain_fields(graph, "n_tokens", "n_evaluations", "n_of_call", "gain_ratio", "wall_ns"),
        "edges_by": "address" if graph.by_address else "name",
        "serial_ns": graph.serial_ns if graph.gain_ratio else None,
        "critical_ns": graph.critical_ns if graph.gain_ratio else None,
        "constants": {
            "n": constants.n,
            "bytes": constants.n_bytes,
            "n_weights": constants.n_weights,
            "weights_bytes": constants.weights_bytes,
        },
        "nodes": [
            {
                **plain_fields(each, *_NODE),
                "layer": layer,
                "bytes": each.n_bytes,
                "counters": dict(zip(graph.counter_names, each.counters, strict=True)),
            }
            for each, layer in zip(graph.operators, layers_of(graph), strict=True)
        ],
        "edges": [list(edge) for edge in graph.edges],
        "critical_path": list(graph.critical),
        "siblings": [
            {**plain_fields(each, "shared", "time_ns", "saving_ns"), "members": list(each.members)}
            for each in graph.siblings
        ],
        "roles": [asdict(each) for each in role_totals(graph)],
    }
