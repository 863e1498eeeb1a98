"""Which node each kernel computes, where a graph was given to backends in parts."""

from __future__ import annotations

import numpy as np

from perfsuite.records.engine_columns import SPLIT_DTYPE
from perfsuite.records.engine_trace import NOTHING
from perfsuite.records.events import EngineRecord, Node, Phase, Span, Tensor
from perfsuite.trace.opencl.opencl_operators import GraphBook


def node(name: str, op: str, *sources: str, n_rows: int = 1) -> Node:
    """Return a node that is computed."""
    return Node(tensor=tensor(name, n_rows), op=op, timed=True, fused=False, sources=tuple(map(tensor, sources)))


def tensor(name: str, n_rows: int = 1) -> Tensor:
    """Return some rows of numbers."""
    return Tensor(name=name, type="f32", ne=(64, n_rows, 1, 1), nb=(4, 256, 256, 256))


SPAN = Span(phase=Phase.DECODE, repetition=0, token=0, n_tokens=1, start_ns=0, end_ns=100)
SHAPES = EngineRecord(
    engine_version="llama 1",
    spans=(SPAN,),
    graphs=(
        (node("embd", "GET_ROWS", "token_embd.weight"),),
        (
            node("norm-0", "RMS_NORM", "embd"),
            node("empty-0", "ADD", "norm-0", n_rows=0),
            node("Qcur-0", "MUL_MAT", "blk.0.attn_q.weight", "norm-0"),
            node("norm-1", "RMS_NORM", "Qcur-0"),
        ),
    ),
    n_dropped=0,
    splits=np.array([(10, 20, 0, 0), (30, 40, 1, 1)], SPLIT_DTYPE).tobytes(),
    backends=("CPU", "OpenCL"),
)


def test_kernels_find_their_nodes_in_order() -> None:
    """The kernels of a role are of the next operator of that role, in whichever part of the graph it is."""
    book = GraphBook(SHAPES)
    graph, nodes = book.places(("norm", "Qcur", "Qcur", "norm"), SPAN)
    assert graph.tolist() == [1, 1, 1, 1]
    assert [book.graphs[1][place].tensor.name for place in nodes.tolist()] == [
        "norm-0",
        "Qcur-0",
        "Qcur-0",
        "norm-1",
    ]
    assert book.n_unplaced == 0


def test_a_kernel_of_no_operator_is_counted() -> None:
    """A role that the graph does not have is of no node, and those behind it are found all the same."""
    book = GraphBook(SHAPES)
    _, nodes = book.places(("norm", "Vcur", "Qcur"), SPAN)
    assert nodes.tolist() == [0, NOTHING, 1]
    assert book.n_unplaced == 1


def test_without_shapes_each_sequence_is_a_graph() -> None:
    """The same roles are the same graph, others another."""
    book = GraphBook(None)
    found = [[each.tolist() for each in book.places(roles, None)] for roles in ("aab", "abb", "b")]
    assert found == [[[0, 0, 0], [0, 0, 1]], [[0, 0, 0], [0, 1, 1]], [[1], [0]]]
    assert [len(graph) for graph in book.graphs] == [2, 1]
