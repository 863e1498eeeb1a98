"""Where the boxes of a graph lie: in ranks from the top, each below all that it reads from.

A short edge passes the ranks between in a place of its own, so that it crosses no box; a long one, such as that of a
residual, goes down a lane to the right of all boxes that it passes. *Source*: Sugiyama, Tagawa and Toda, Methods for
visual understanding of hierarchical system structures, 1981.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

import networkx as nx

#: Edges over more ranks than these go down a lane.
_MOST_RANKS = 3
_N_SWEEPS = 6

#: A box is (number,), an edge that passes a rank (from, to, rank).
_Place = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Places in columns, from the middle, and ranks, from the top."""

    #: By box.
    places: tuple[tuple[float, int], ...]
    #: By edge that passes other ranks: the column at each.
    bends: dict[tuple[int, int], tuple[float, ...]]
    #: By edge that goes down a lane: its number, 0 next to the boxes.
    lanes: dict[tuple[int, int], int]
    n_ranks: int
    #: How many columns the widest rank has.
    n_columns: int

    def widest(self, first: int, last: int) -> float:
        """Return how far to the right the middles of boxes of some ranks lie."""
        return max((x for x, rank in self.places if first <= rank <= last), default=0.0)


def lay_out(n_nodes: int, edges: Sequence[tuple[int, int]]) -> Layout:
    """Lay out boxes that are numbered in an order in which each comes behind those that it reads from."""
    ranks = _ranks(n_nodes, edges)
    spans = {edge: ranks[edge[1]] - ranks[edge[0]] for edge in edges}
    rows = _rows(ranks, {edge: span for edge, span in spans.items() if span <= _MOST_RANKS})
    columns = {each: x for row in rows for each, x in _centred(row)}
    places = tuple((columns[number,], ranks[number]) for number in range(n_nodes))
    return Layout(
        places=places,
        bends={
            edge: tuple(columns[(*edge, rank)] for rank in range(ranks[edge[0]] + 1, ranks[edge[1]]))
            for edge, span in spans.items()
            if 1 < span <= _MOST_RANKS
        },
        lanes=_lanes([edge for edge, span in spans.items() if span > _MOST_RANKS], ranks),
        n_ranks=max(ranks, default=-1) + 1,
        n_columns=max(map(len, rows), default=0),
    )


def _ranks(n_nodes: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return the longest way to each box; one that reads from none lies right above its first reader."""
    digraph: nx.DiGraph[int] = nx.DiGraph()
    digraph.add_nodes_from(range(n_nodes))
    digraph.add_edges_from(edges)
    ranks = [0] * n_nodes
    for rank, members in enumerate(nx.topological_generations(digraph)):
        for each in members:
            ranks[each] = rank
    for each in digraph:
        if not digraph.in_degree(each) and digraph.out_degree(each):
            ranks[each] = min(ranks[reader] for reader in digraph.successors(each)) - 1
    return ranks


def _lanes(edges: Sequence[tuple[int, int]], ranks: Sequence[int]) -> dict[tuple[int, int], int]:
    """Give each long edge the innermost lane that is free over its ranks, the shorter ones first."""
    taken: list[list[tuple[int, int]]] = []
    found: dict[tuple[int, int], int] = {}
    for edge in sorted(edges, key=lambda each: (ranks[each[1]] - ranks[each[0]], each)):
        first, last = ranks[edge[0]], ranks[edge[1]]
        free = (lane for lane, spans in enumerate(taken) if all(last <= low or high <= first for low, high in spans))
        lane = next(free, len(taken))
        if lane == len(taken):
            taken.append([])
        taken[lane].append((first, last))
        found[edge] = lane
    return found


def _rows(ranks: Sequence[int], spans: Mapping[tuple[int, int], int]) -> list[list[_Place]]:
    """Put boxes, and the edges that pass, in order within each rank: by what they lead to and come from, by turns."""
    rows: list[list[_Place]] = [[] for _ in range(max(ranks, default=-1) + 1)]
    near: dict[tuple[_Place, int], list[_Place]] = {}
    for number, rank in enumerate(ranks):
        rows[rank].append((number,))
    for edge, span in spans.items():
        passed = [(*edge, ranks[edge[0]] + step) for step in range(1, span)]
        for each in passed:
            rows[each[2]].append(each)
        for one, other in pairwise([(edge[0],), *passed, (edge[1],)]):
            near.setdefault((one, -1), []).append(other)
            near.setdefault((other, 1), []).append(one)
    for row in rows:
        row.sort(key=lambda each: (each[0], len(each)))
    columns = {each: x for row in rows for each, x in _centred(row)}
    for sweep in range(_N_SWEEPS):
        step = 1 if sweep % 2 == 0 else -1
        for row in rows[::step]:
            row.sort(key=lambda each: fmean(columns[other] for other in near.get((each, step), (each,))))
            columns.update(_centred(row))
    return rows


def _centred(row: Sequence[_Place]) -> list[tuple[_Place, float]]:
    return [(each, place - (len(row) - 1) / 2) for place, each in enumerate(row)]
