"""Edges between operators, critical paths and siblings."""

from __future__ import annotations

import itertools
from dataclasses import replace

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.records.events import Node, Tensor
from perfsuite.testing.engine_traces import node, small_graph, tensor
from perfsuite.testing.large_trace import decode_graph
from perfsuite.trace.graph.edges import Interval, critical_path, operator_bytes, siblings_of, sources_of, tensor_bytes


def quantized(name: str, ne: tuple[int, ...]) -> Tensor:
    """Return a Q8_0 tensor: 34 bytes for 32 values."""
    made = tensor(name, ne, type="q8_0")
    row = ne[0] // 32 * 34
    sizes = (*ne[1:], 1, 1, 1)
    return replace(made, nb=(34, row, row * sizes[0], row * sizes[0] * sizes[1]))


def test_a_view_across_strides_reaches_from_its_first_to_its_last_element() -> None:
    """A permuted view of 3 heads is as long as the cache that it shows; a stride of 0 takes no bytes."""
    view = replace(tensor("k", (64, 256, 3), type="f16"), nb=(2, 384, 128, 98304))
    assert (tensor_bytes(view), tensor_bytes(replace(tensor("a", (64, 9)), nb=(4, 0, 0, 0)))) == (192 * 256 * 2, 256)


def test_an_operator_moves_what_it_reads_and_writes() -> None:
    """A product all three tensors; lookups and stores their rows, and not the table."""
    product = node("MUL_MAT", tensor("y", (192,)), quantized("w", (576, 192)), tensor("x", (576,)))
    assert operator_bytes(product) == 117504 + 4 * 576 + 4 * 192
    lookup = node("GET_ROWS", tensor("y", (64, 2)), quantized("t", (64, 1000)), tensor("ids", (2,), type="i32"))
    assert operator_bytes(lookup) == 2 * 68 + 8 + 512
    cache = tensor("cache", (192, 256), type="f16", element_bytes=2)
    store = node("SET_ROWS", cache, tensor("k", (192,)), tensor("ids", (1,), type="i64", element_bytes=8), cache)
    assert operator_bytes(store) == 768 + 8 + 384


def test_experts_that_nobody_chose_are_not_read() -> None:
    """Of 60 matrices the 4 that one token chose; 16 tokens choose 40 that differ, 60 (1 - (56/60)^16)."""
    for n_experts, n_read in ((60, 4), (2, 2)):
        experts = quantized("w", (64, 32, n_experts))
        chosen = tensor("ids", (4,), type="i32")
        product = node("MUL_MAT_ID", tensor("y", (32, 4)), experts, tensor("x", (64,)), chosen)
        assert operator_bytes(product) == n_read * 64 * 32 // 32 * 34 + 256 + 16 + 512
    experts, chosen = quantized("w", (64, 32, 60)), tensor("ids", (4, 16), type="i32")
    product = node("MUL_MAT_ID", tensor("y", (32, 4, 16)), experts, tensor("x", (64, 1, 16)), chosen)
    assert operator_bytes(product) == 40 * 64 * 32 // 32 * 34 + 16 * (256 + 16 + 512)


def test_what_is_not_known_makes_the_sum_unknown() -> None:
    """Fused attention skips most of its cache; a sum without one of its parts would be too small."""
    cache = tensor("cache_k_l0", (64, 256), type="f16", element_bytes=2)
    assert operator_bytes(node("FLASH_ATTN_EXT", tensor("y", (64,)), tensor("q", (64,)), cache, cache)) is None
    assert operator_bytes(node("ADD", tensor("y"), tensor("x", type="new"))) is None
    found = sources_of((node("ADD", tensor("y"), tensor("w.weight", type="new"), tensor("x")),))
    assert (found.constants.n_bytes, found.constants.weights_bytes, found.constants.n) == (None, None, 2)


def without_addresses(graph: tuple[Node, ...]) -> tuple[Node, ...]:
    def bare(shown: Tensor) -> Tensor:
        return replace(shown, root=None)

    return tuple(replace(each, tensor=bare(each.tensor), sources=tuple(map(bare, each.sources))) for each in graph)


def test_a_source_comes_from_the_operator_that_made_it() -> None:
    """Both products read the norm and the sum both; a view's address says whose memory it is."""
    found = sources_of(small_graph())
    assert (found.edges, found.constants.n, found.constants.n_weights) == (((0, 1), (0, 2), (1, 3), (2, 3)), 4, 3)
    assert found.constants.weights_bytes == 256 + 2 * 64 * 64 * 4
    assert found.constants.n_bytes == 256 + 256 + 2 * 64 * 64 * 4
    assert found.by_address
    made = tensor("Qcur-0", (64,))
    view = replace(tensor("something else (permuted)", (8, 8)), root=made.root)
    assert sources_of((node("MUL_MAT", made), node("ROPE", tensor("q"), view))).edges == ((0, 1),)


def test_the_last_writer_counts() -> None:
    made = tensor("x")
    graph = (
        node("ADD", made),
        node("MUL", tensor("y"), made),
        node("SCALE", made, made),
        node("ADD", tensor("z"), made),
    )
    assert sources_of(graph).edges == ((0, 1), (0, 2), (1, 2), (2, 3))
    assert sources_of(graph).reads == ((0, 1), (0, 2), (2, 3))


def test_all_writers_of_parts_count() -> None:
    cache = tensor("cache_k_l0", (64, 256))
    graph = (
        node("CPY", tensor("before"), cache),
        node("SET_ROWS", cache, tensor("k1")),
        node("SET_ROWS", cache, tensor("k2")),
        node("FLASH_ATTN_EXT", tensor("y"), cache),
    )
    found = sources_of(graph)
    assert found.edges == ((1, 3), (2, 3))
    assert (found.constants.n, found.constants.n_weights, found.constants.weights_bytes) == (3, 0, 0)


def test_an_address_that_was_used_before_is_not_a_name() -> None:
    one, other = tensor("node_1", root=1), tensor("node_1", root=2)
    graph = (node("ADD", one), node("ADD", other), node("MUL", tensor("y"), one))
    assert sources_of(graph).edges == ((0, 2),)


def test_without_addresses_names_have_to_do() -> None:
    """A real decode graph's edges are the same by names; what a view is seen as is left out of its name."""
    graph = decode_graph(n_layers=2)
    found = sources_of(without_addresses(graph))
    assert not found.by_address
    assert found.edges == sources_of(graph).edges
    view = replace(tensor("x (view) (permuted)"), root=None)
    assert sources_of(without_addresses((node("ADD", tensor("x")), node("MUL", tensor("y"), view)))).edges == ((0, 1),)


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
    assert critical_path(nx.DiGraph(), {}) == ()


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


@pytest.mark.parametrize(("start_ns", "is_sibling"), [(10.0, True), (6.0, True), (4.0, False), (0.0, False)])
def test_operators_that_run_together_are_no_siblings(start_ns: float, is_sibling: bool) -> None:
    """Two of 10 ns that overlap by more than half already run side by side."""
    intervals = {1: Interval(start_ns=0.0, time_ns=10.0), 2: Interval(start_ns=start_ns, time_ns=10.0)}
    assert bool(siblings_of(nx.DiGraph([(0, 1), (0, 2)]), intervals)) == is_sibling
