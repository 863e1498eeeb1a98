"""Where the boxes of a graph lie."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from perfsuite.report.graph.layout import lay_out


def test_a_short_edge_passes_a_rank_in_a_place_of_its_own() -> None:
    """It keeps its column, so that it crosses no box; residuals go down lanes, and two that do not meet share one."""
    layout = lay_out(5, [(0, 1), (0, 2), (2, 3), (1, 4), (3, 4)])
    (column,) = layout.bends[1, 4]
    assert column != layout.places[3][0]
    assert column == -0.5
    chain = list(itertools.pairwise(range(12)))
    layout = lay_out(12, [*chain, (0, 5), (5, 11), (0, 11)])
    assert layout.lanes == {(0, 5): 0, (5, 11): 0, (0, 11): 1}
    assert layout.n_columns == 1


@given(st.data())
def test_boxes_lie_below_what_they_read_and_apart(data: st.DataObject) -> None:
    """In any graph each edge leads down, and no two boxes or passing edges share a place."""
    n = data.draw(st.integers(1, 12))
    pairs = list(itertools.combinations(range(n), 2))
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    layout = lay_out(n, edges)
    assert all(layout.places[origin][1] < layout.places[target][1] for origin, target in edges)
    passing = [
        (column, rank)
        for edge, columns in layout.bends.items()
        for rank, column in enumerate(columns, start=layout.places[edge[0]][1] + 1)
    ]
    taken = [*layout.places, *passing]
    assert len(set(taken)) == len(taken)
    assert max(rank for _, rank in layout.places) == layout.n_ranks - 1
