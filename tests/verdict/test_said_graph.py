"""Graphs that an engine says: what differs from those that it computes, and is put right."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.expectation.engine_graphs import GraphKey
from perfsuite.records.events import Node, Tensor
from perfsuite.verdict.said_graph import STAND_IN_OUTPUTS, said_operators

FIRST, NEXT = GraphKey(4, 1, 256, is_first=True), GraphKey(4, 1, 256, is_first=False)


def tensor(name: str, *ne: int, root: int, type_name: str = "f32") -> Tensor:
    """Return a tensor whose memory is known by a number."""
    a, b, c, d = (*ne, 1, 1, 1, 1)[:4]
    return Tensor(name=name, type=type_name, ne=(a, b, c, d), nb=(4, 4 * a, 4 * a * b, 4 * a * b * c), root=root)


def node(made: Tensor, op: str, *sources: Tensor) -> Node:
    return Node(tensor=made, op=op, sources=sources)


@pytest.mark.parametrize(("key", "n_cleared"), [(FIRST, 64), (NEXT, 0)])
def test_a_state_is_cleared_before_a_text_alone(key: GraphKey, n_cleared: int) -> None:
    state = tensor("conv_states (reshaped) (view)", 64, root=1)
    rows = tensor("x", 8, 4, root=2)
    clearing = node(replace(state, name="conv_states (view)"), "SCALE", state)
    made = node(rows, "MUL", tensor("a", 8, 4, root=3), tensor("b", 8, 4, root=4))
    scaled = node(replace(rows, name="scaled"), "SCALE", rows)
    found = said_operators([clearing, made, scaled], key)
    assert [each.output.n_elements for each in found] == [n_cleared, 32, 32]


def test_what_is_stored_goes_into_the_whole_cache() -> None:
    """The cache of keys and that of an index have one name, and are told apart by their width."""

    def stores(n_cells: int) -> list[Node]:
        caches = [tensor("cache_k_l0", width, n_cells, root=width, type_name="f16") for width in (64, 32)]
        rows = tensor("k", 64, 4, root=5)
        places = tensor("k_idxs", 4, root=6, type_name="i64")
        return [node(replace(each, name="cache_k_l0 (view)"), "SET_ROWS", rows, places, each) for each in caches]

    found = said_operators(stores(256), FIRST, whole=stores(1024))
    assert [each.output.ne for each in found] == [(64, 1024, 1, 1), (32, 1024, 1, 1)]
    assert [each.sources[2].ne for each in found] == [(64, 1024, 1, 1), (32, 1024, 1, 1)]


def test_a_batch_without_logits_has_no_rows_behind_their_gather() -> None:
    """What stands in for the outputs is 0 in all that follows, and the cache is untouched."""
    ids = tensor("out_ids", STAND_IN_OUTPUTS, root=1, type_name="i32")
    rows, gathered = tensor("x", 8, 512, root=2), tensor("node_1", 8, STAND_IN_OUTPUTS, root=3)
    weight = tensor("output.weight", 8, STAND_IN_OUTPUTS, root=4)
    graph = [
        node(rows, "ADD", tensor("a", 8, 512, root=5), tensor("b", 8, 512, root=6)),
        node(gathered, "GET_ROWS", rows, ids),
        node(tensor("result_output", STAND_IN_OUTPUTS, STAND_IN_OUTPUTS, root=7), "MUL_MAT", weight, gathered),
    ]
    add, gather, logits = said_operators(graph, GraphKey(512, 0, 512, is_first=True))
    assert (add.output.n_elements, gather.output.ne[1], logits.output.ne[1]) == (8 * 512, 0, 0)
    assert logits.sources[0].ne == (8, STAND_IN_OUTPUTS, 1, 1)
