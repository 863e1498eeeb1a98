"""What a graph's edges allow: its critical path, and operators that could run side by side.

    serial    = sum of t_i                     one operator after the other, as they are computed
    critical  = max over paths of sum of t_i   each operator as soon as what it reads is there
    gain     <= serial / critical

The bound holds for operators that take as long side by side as alone: with processors and bandwidth of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

_END = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """When an operator usually runs, from its graph's first entry on."""

    start_ns: float
    time_ns: float

    @property
    def end_ns(self) -> float:
        return self.start_ns + self.time_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Siblings:
    """Operators that read what one operator made, do not depend on one another, and run one after the other."""

    #: The operator whose result they share.
    shared: int
    members: tuple[int, ...]
    #: Their sum, and what would be saved if they took no longer than the longest of them.
    time_ns: float
    saving_ns: float


def critical_path(digraph: nx.DiGraph[int], times_ns: Mapping[int, float]) -> tuple[int, ...]:
    """Return the path that takes the longest; an operator without a time takes none."""
    weighted: nx.DiGraph[int] = nx.DiGraph()
    for node in digraph:
        weighted.add_edge(node, _END, ns=times_ns.get(node, 0.0))
    for origin, target in digraph.edges:
        weighted.add_edge(origin, target, ns=times_ns.get(origin, 0.0))
    return tuple(each for each in nx.dag_longest_path(weighted, weight="ns") if each != _END)


def siblings_of(digraph: nx.DiGraph[int], intervals: Mapping[int, Interval]) -> tuple[Siblings, ...]:
    """Return the groups of siblings in the order of execution, none of them within another."""
    above = _ancestors(digraph)
    found: dict[tuple[int, ...], Siblings] = {}
    for origin in digraph:
        for members in _independent(sorted(digraph.successors(origin)), above):
            for group in _apart(members, intervals):
                if len(group) > 1 and group not in found:
                    times_ns = [intervals[each].time_ns for each in group]
                    saving_ns = sum(times_ns) - max(times_ns)
                    found[group] = Siblings(shared=origin, members=group, time_ns=sum(times_ns), saving_ns=saving_ns)
    within = {one for one in found for other in found if set(one) < set(other)}
    return tuple(found[group] for group in sorted(found.keys() - within))


def _ancestors(digraph: nx.DiGraph[int]) -> dict[int, int]:
    """Return for each operator those that it depends on, one bit each."""
    above: dict[int, int] = {}
    for node in nx.topological_sort(digraph):
        above[node] = 0
        for before in digraph.predecessors(node):
            above[node] |= above[before] | 1 << before
    return above


def _independent(readers: Sequence[int], above: Mapping[int, int]) -> Iterator[tuple[int, ...]]:
    """Sort the readers of one result into groups of which none depends on another, in the order of execution."""
    groups: list[list[int]] = []
    for reader in readers:
        free = (group for group in groups if not any(above[reader] >> each & 1 for each in group))
        if (group := next(free, None)) is None:
            groups.append(group := [])
        group.append(reader)
    yield from map(tuple, groups)


def _apart(members: Sequence[int], intervals: Mapping[int, Interval]) -> Iterator[tuple[int, ...]]:
    """Yield the members that run one after the other: which overlap the one before by less than half of either."""
    group: list[int] = []
    for each in (member for member in members if member in intervals):
        if group:
            before, own = intervals[group[-1]], intervals[each]
            overlap_ns = min(before.end_ns, own.end_ns) - max(before.start_ns, own.start_ns)
            if overlap_ns > 0.5 * min(before.time_ns, own.time_ns):
                continue
        group.append(each)
    yield tuple(group)
