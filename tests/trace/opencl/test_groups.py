"""Operators of groups of nodes."""

from __future__ import annotations

import pytest

from perfsuite.records.events import Node, Tensor
from perfsuite.trace.opencl.groups import group_operators


def node(name: str, op: str, *, computed: bool = True, sources: tuple[str, ...] = ()) -> Node:
    """Return a node of a made-up graph."""
    return Node(tensor=_tensor(name), op=op, timed=computed, fused=False, sources=tuple(map(_tensor, sources)))


def _tensor(name: str) -> Tensor:
    return Tensor(name=name, type="f32", ne=(64, 1, 1, 1), nb=(4, 256, 256, 256))


GRAPH = (
    node("norm-3", "RMS_NORM", sources=("l_out-2",)),
    node("attn_norm-3", "MUL", sources=("norm-3", "blk.3.attn_norm.weight")),
    node("Qcur-3", "MUL_MAT", sources=("blk.3.attn_q.weight", "attn_norm-3")),
    node("Qcur-3 (reshaped)", "RESHAPE", computed=False, sources=("Qcur-3",)),
)


def test_each_node_alone_is_an_operator() -> None:
    """Node by node, the norm and its weight are two operators, and a view is none."""
    operators = group_operators(GRAPH, [(0, 1), (1, 2), (2, 3), (3, 4)])
    assert [each and (each.role, each.op) for each in operators] == [
        ("norm", "RMS_NORM"),
        ("attn_norm", "MUL"),
        ("Qcur", "MUL_MAT"),
        None,
    ]


def test_a_group_is_one_operator() -> None:
    """The nodes that one kernel computes are joined under the name of the last, with the sources from outside."""
    operators = group_operators(GRAPH, [(0, 2), (2, 4)])
    assert operators[0] is not None
    assert (operators[0].role, operators[0].op, operators[0].layer) == ("attn_norm", "RMS_NORM+MUL", 3)
    assert [source.name for source in operators[0].node.sources] == ["l_out-2", "blk.3.attn_norm.weight"]


def test_three_nodes_may_be_one_operator() -> None:
    """A group is not limited to a pair."""
    (operator,) = group_operators(GRAPH, [(0, 4)])
    assert operator is not None
    assert operator.op == "RMS_NORM+MUL+MUL_MAT"


@pytest.mark.parametrize("groups", [[], [(3, 4)]])
def test_nothing_computed_is_no_operator(groups: list[tuple[int, int]]) -> None:
    """A group of views computes nothing."""
    assert set(group_operators(GRAPH, groups)) <= {None}
