"""Edges between operators."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.records.events import Node, Tensor
from perfsuite.testing.engine_traces import node, small_graph, tensor
from perfsuite.testing.large_trace import decode_graph
from perfsuite.trace.graph.edges import operator_bytes, sources_of, tensor_bytes


def quantized(name: str, ne: tuple[int, ...], block_bytes: int = 34) -> Tensor:
    """Return a Q8_0 tensor: 34 bytes for 32 values."""
    made = tensor(name, ne, type="q8_0")
    row = ne[0] // 32 * block_bytes
    sizes = (*ne[1:], 1, 1, 1)
    return replace(made, nb=(block_bytes, row, row * sizes[0], row * sizes[0] * sizes[1]))


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (tensor("a", (576,)), 2304),
        (tensor("a", (576, 3)), 6912),
        (quantized("a", (576, 192)), 576 * 192 // 32 * 34),
        (tensor("a", (4, 2), type="no type"), None),
        (tensor("a", (0, 2)), 0),
    ],
)
def test_a_tensor_is_as_long_as_its_elements(shown: Tensor, expected: int | None) -> None:
    """Blocks of a quantised type count as blocks; nothing is known of a type that ggml does not have."""
    assert tensor_bytes(shown) == expected


def test_a_view_across_strides_reaches_from_its_first_to_its_last_element() -> None:
    """A permuted view of 3 heads of 64 values at 256 positions is as long as the cache that it shows."""
    view = replace(tensor("k", (64, 256, 3), type="f16"), nb=(2, 384, 128, 98304))
    assert tensor_bytes(view) == 192 * 256 * 2


def test_a_broadcast_reads_its_element_once() -> None:
    """A stride of 0 takes no bytes."""
    assert tensor_bytes(replace(tensor("a", (64, 9)), nb=(4, 0, 0, 0))) == 256


def test_a_product_moves_weights_activations_and_result() -> None:
    """All three by their own sizes."""
    product = node("MUL_MAT", tensor("y", (192,)), quantized("w", (576, 192)), tensor("x", (576,)))
    assert operator_bytes(product) == 117504 + 4 * 576 + 4 * 192


def test_a_lookup_reads_the_rows_that_it_returns() -> None:
    """Two rows of 34/32 bytes a value, two ids and two rows of the result; not the table."""
    lookup = node("GET_ROWS", tensor("y", (64, 2)), quantized("t", (64, 1000)), tensor("ids", (2,), type="i32"))
    assert operator_bytes(lookup) == 2 * 68 + 8 + 512


def test_a_store_writes_the_rows_that_it_is_given() -> None:
    """One row in, one id, one row of F16 out; the cache behind them stays where it is."""
    cache = tensor("cache", (192, 256), type="f16", element_bytes=2)
    store = node("SET_ROWS", cache, tensor("k", (192,)), tensor("ids", (1,), type="i64", element_bytes=8), cache)
    assert operator_bytes(store) == 768 + 8 + 384


def test_experts_that_nobody_chose_are_not_read() -> None:
    """Of 60 matrices the 4 that one token chose; of two, never more than there are."""
    for n_experts, n_read in ((60, 4), (2, 2)):
        experts = quantized("w", (64, 32, n_experts))
        chosen = tensor("ids", (4,), type="i32")
        product = node("MUL_MAT_ID", tensor("y", (32, 4)), experts, tensor("x", (64,)), chosen)
        assert operator_bytes(product) == n_read * 64 * 32 // 32 * 34 + 256 + 16 + 512


def test_a_prompt_reads_the_different_experts() -> None:
    """16 tokens of 4 experts each choose 64 of 60, of which 60 (1 - (56/60)^16) = 40 differ."""
    experts, chosen = quantized("w", (64, 32, 60)), tensor("ids", (4, 16), type="i32")
    product = node("MUL_MAT_ID", tensor("y", (32, 4, 16)), experts, tensor("x", (64, 1, 16)), chosen)
    assert operator_bytes(product) == 40 * 64 * 32 // 32 * 34 + 16 * (256 + 16 + 512)


def test_what_fused_attention_reads_is_not_known() -> None:
    """A step at 20 positions skips most of a cache of 256, and nothing in the graph says so."""
    cache = tensor("cache_k_l0", (64, 256), type="f16", element_bytes=2)
    assert operator_bytes(node("FLASH_ATTN_EXT", tensor("y", (64,)), tensor("q", (64,)), cache, cache)) is None


def test_one_unknown_type_makes_the_sum_unknown() -> None:
    """A sum without one of its parts would be too small."""
    assert operator_bytes(node("ADD", tensor("y"), tensor("x", type="new"))) is None


def without_addresses(graph: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return a graph as a recorder sees it that reads no addresses."""

    def bare(shown: Tensor) -> Tensor:
        return replace(shown, root=None)

    return tuple(replace(each, tensor=bare(each.tensor), sources=tuple(map(bare, each.sources))) for each in graph)


def test_a_source_comes_from_the_operator_that_made_it() -> None:
    """Both products read the norm and the sum reads both products; weights and the input are constants."""
    found = sources_of(small_graph())
    assert found.edges == ((0, 1), (0, 2), (1, 3), (2, 3))
    assert (found.constants.n, found.constants.n_weights) == (4, 3)
    assert found.constants.weights_bytes == 256 + 2 * 64 * 64 * 4
    assert found.constants.n_bytes == 256 + 256 + 2 * 64 * 64 * 4
    assert found.by_address


def test_a_view_is_of_the_operator_that_wrote_its_root() -> None:
    """Whatever a view is called and however it is shaped, its address says whose memory it is."""
    made = tensor("Qcur-0", (64,))
    view = replace(tensor("something else (permuted)", (8, 8)), root=made.root)
    assert sources_of((node("MUL_MAT", made), node("ROPE", tensor("q"), view))).edges == ((0, 1),)


def test_the_last_writer_counts() -> None:
    """An operator in place takes over: who reads afterwards waits for it alone."""
    made = tensor("x")
    graph = (node("ADD", made), node("SCALE", made, made), node("MUL", tensor("y"), made))
    assert sources_of(graph).edges == ((0, 1), (1, 2))


def test_what_is_written_over_was_read_before() -> None:
    """An operator in place waits for all that read what it writes over, so it runs beside none of them."""
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
    """A cache that two operators write without reading it comes from both; before them it is a constant."""
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
    """Two tensors of one name at two addresses are two."""
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


def test_nameless_tensors_have_no_edges_without_addresses() -> None:
    """Two tensors that are called nothing are not the same one."""
    graph = without_addresses((node("ADD", tensor("")), node("MUL", tensor("y"), tensor(""))))
    found = sources_of(graph)
    assert (found.edges, found.constants.n) == ((), 0)


def test_a_source_whose_address_was_not_read_is_left_out() -> None:
    """Where others have addresses, one without is neither an edge nor a constant."""
    lost = replace(tensor("x"), root=None)
    found = sources_of((node("ADD", lost, tensor("a")), node("MUL", tensor("y"), lost)))
    assert (found.edges, found.constants.n) == ((), 1)


def test_a_constant_counts_once_at_its_largest() -> None:
    """Two views of one tensor are one constant; the one that shows more of it tells its size."""
    small, large = tensor("t", (8,), root=5), tensor("t (view)", (64,), root=5)
    for order in ((small, large), (large, small)):
        assert sources_of((node("ADD", tensor("y"), *order),)).constants.n_bytes == 256


def test_a_constant_of_unknown_size_makes_the_sum_unknown() -> None:
    """And not too small."""
    found = sources_of((node("ADD", tensor("y"), tensor("w.weight", type="new"), tensor("x")),))
    assert (found.constants.n_bytes, found.constants.weights_bytes, found.constants.n) == (None, None, 2)
