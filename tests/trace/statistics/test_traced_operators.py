"""Roles of traced operators."""

from __future__ import annotations

from perfsuite.testing.engine_traces import node, small_graph, tensor
from perfsuite.trace.statistics.traced_operators import n_positions_of, n_tokens_of, traced_operators

from ...synthetic_statistics import attention, product


def test_roles_are_those_of_the_expectation() -> None:
    """A bare norm is called by its weight, what has neither source nor name by what it does."""
    found = [(each.role, each.op, each.layer) for each in traced_operators(small_graph())]
    assert found == [
        ("attn_norm", "RMS_NORM+MUL", 0),
        ("Qcur", "MUL_MAT", 0),
        ("Kcur", "MUL_MAT", 0),
        ("sum", "ADD", 0),
    ]
    names = [("norm-3", "blk.3.ffn_norm.weight"), ("norm", "output_norm.weight")]
    graph = [node("RMS_NORM", tensor(name), tensor("x"), tensor(weight), fused_op="MUL") for name, weight in names]
    assert [(each.role, each.layer) for each in traced_operators(graph)] == [("ffn_norm", 3), ("result_norm", None)]
    graph = [node("MUL_MAT", tensor("node_1")), node("GET_ROWS", tensor("node_2"))]
    assert [(each.role, each.op) for each in traced_operators(graph)] == [
        ("mul_mat", "MUL_MAT"),
        ("get_rows", "GET_ROWS"),
    ]


def test_a_graph_shows_its_tokens_and_positions() -> None:
    """Tokens are the columns of products, positions those that attention reads; without either they are not known."""
    graph = (product("Qcur", 64, 64, n_tokens=5), attention(512, n_tokens=5))
    assert (n_tokens_of(graph), n_positions_of(graph)) == (5, 512)
    scores = node("SOFT_MAX", tensor("kq_soft_max-0", (256, 1, 9)), tensor("kq-0", (256, 1, 9)))
    assert (n_positions_of([scores]), n_tokens_of([]), n_positions_of([])) == (256, None, None)
