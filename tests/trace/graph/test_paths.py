"""Critical paths and siblings."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.trace.graph.paths import Interval, critical_path, siblings_of

#: Q, K and V read 0; Q and K lead to 4, V to 5; 6 reads both.
DIAMOND = nx.DiGraph([(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 5), (4, 6), (5, 6)])


def one_by_one(*times_ns: float) -> dict[int, Interval]:
    starts = [sum(times_ns[:number]) for number in range(len(times_ns))]
    return {
        number: Interval(start_ns=start, time_ns=time)
        for number, (start, time) in enumerate(zip(starts, times_ns, strict=True))
    }


def test_the_critical_path_takes_the_longest() -> None:
    times = {0: 1.0, 1: 2.0, 2: 3.0, 3: 9.0, 4: 4.0, 5: 1.0, 6: 1.0}
    assert critical_path(DIAMOND, times) == (0, 3, 5, 6)
    del times[3]
    assert critical_path(DIAMOND, times) == (0, 2, 4, 6)
    assert critical_path(nx.DiGraph([(0, 1), (1, 2), (0, 3)]), {0: 1, 1: 1, 2: 1, 3: 5}) == (0, 3)
    lonely: nx.DiGraph[int] = nx.DiGraph([(0, 1)])
    lonely.add_node(2)
    assert (critical_path(lonely, {0: 1.0, 1: 1.0, 2: 9.0}), critical_path(nx.DiGraph(), {})) == ((2,), ())


@given(st.data())
def test_no_path_is_longer(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 7))
    pairs = list(itertools.combinations(range(n), 2))
    digraph: nx.DiGraph[int] = nx.DiGraph()
    digraph.add_nodes_from(range(n))
    digraph.add_edges_from(data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else [])
    times = {node: float(data.draw(st.integers(0, 9))) for node in range(n)}
    found = critical_path(digraph, times)
    assert nx.is_path(digraph, found)
    longest = max(
        sum(times[node] for node in path)
        for origin, target in itertools.product(range(n), repeat=2)
        for path in ([[origin]] if origin == target else nx.all_simple_paths(digraph, origin, target))
    )
    assert sum(times[node] for node in found) == longest


def test_siblings_share_an_input_and_run_one_after_the_other() -> None:
    (found,) = siblings_of(DIAMOND, one_by_one(1, 2, 3, 9, 4, 1, 1))
    assert (found.shared, found.members, found.time_ns, found.saving_ns) == (0, (1, 2, 3), 14, 5)
    assert siblings_of(nx.DiGraph([(0, 1), (1, 2), (0, 2)]), one_by_one(1, 1, 1)) == ()
    assert siblings_of(DIAMOND, {1: Interval(start_ns=0.0, time_ns=1.0)}) == ()


def test_a_group_within_a_group_is_left_out() -> None:
    digraph = nx.DiGraph([(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3)])
    found = siblings_of(digraph, one_by_one(1, 1, 1, 1, 1))
    assert [each.members for each in found] == [(1, 4), (2, 3)]
    assert [
        each.members for each in siblings_of(nx.DiGraph([(0, 2), (0, 3), (0, 4), (1, 3), (1, 4)]), one_by_one(*[1] * 5))
    ] == [(2, 3, 4)]


@pytest.mark.parametrize(("start_ns", "is_sibling"), [(10.0, True), (6.0, True), (4.0, False), (0.0, False)])
def test_operators_that_run_together_are_no_siblings(start_ns: float, is_sibling: bool) -> None:
    """Two of 10 ns that overlap by more than half already run side by side."""
    intervals = {1: Interval(start_ns=0.0, time_ns=10.0), 2: Interval(start_ns=start_ns, time_ns=10.0)}
    assert bool(siblings_of(nx.DiGraph([(0, 1), (0, 2)]), intervals)) == is_sibling
