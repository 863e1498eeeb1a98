"""The graph of a phase with the layers folded into one."""

from __future__ import annotations

from perfsuite.records.events import EngineRecord, Node, Tensor
from perfsuite.records.observation import OperatorSpan, RoleEdge, RoleNode
from perfsuite.trace.operators import timed_operators
from perfsuite.trace.role_graph import role_edges, role_graph


def _tensor(name: str, root: int, *, is_empty: bool = False) -> Tensor:
    return Tensor(name=name, type="f32", ne=(0 if is_empty else 4, 1, 1, 1), nb=(4, 16, 16, 16), root=root)


def _node(name: str, root: int, *sources: Tensor, op: str = "ADD", is_empty: bool = False) -> Node:
    made = _tensor(name, root, is_empty=is_empty)
    return Node(tensor=made, op=op, timed=not is_empty, fused=False, sources=sources)


def _span(role: str, layer: int | None, duration_ns: int) -> OperatorSpan:
    return OperatorSpan(role=role, op="ADD", layer=layer, start_ns=0, duration_ns=duration_ns)


def _edges(*pairs: tuple[str, str]) -> tuple[RoleEdge, ...]:
    return tuple(RoleEdge(source=source, target=target) for source, target in pairs)


def test_layers_are_one() -> None:
    """Operators of one role count together, in the order in which roles first run."""
    operators = [_span("b", 0, 5), _span("a", 0, 1), _span("b", 1, 7)]
    graph = role_graph("decode", operators, ())
    assert graph.nodes == (
        RoleNode(role="b", op="ADD", n_operators=2, time_ns=12),
        RoleNode(role="a", op="ADD", n_operators=1, time_ns=1),
    )


def test_edges_are_between_roles_that_ran() -> None:
    """An edge to a role without an operator is left out."""
    graph = role_graph("decode", [_span("a", 0, 1)], _edges(("a", "a"), ("a", "gone")))
    assert graph.edges == _edges(("a", "a"))


def test_a_view_stands_for_what_wrote_its_memory() -> None:
    """A source without a name of its own is resolved by the memory that it shows."""
    graph = [_node("Qcur-0", 1), _node("kqv-0", 2, _tensor(" (view)", 1)), _node("kqv-1", 3, _tensor("", 2))]
    assert role_edges([graph]) == _edges(("Qcur", "kqv"), ("kqv", "kqv"))


def test_who_writes_over_what_another_reads_computes_nothing_for_it() -> None:
    """An operator in place waits for other readers; that is no edge, for nothing passes between them."""
    graph = [_node("a-0", 1), _node("b-0", 2, _tensor("a-0", 1)), _node("c-0", 1, _tensor("a-0", 1))]
    assert role_edges([graph]) == _edges(("a", "b"), ("a", "c"))


def test_each_pair_is_told_once() -> None:
    """Several graphs of a phase, and several layers of one, have the same edges."""
    graph = [_node("a-0", 1), _node("b-0", 2, _tensor("a-0", 1)), _node("a-1", 3), _node("b-1", 4, _tensor("a-1", 3))]
    assert role_edges([graph, graph]) == _edges(("a", "b"))


def test_a_recorded_graph_is_connected(stored_record: EngineRecord) -> None:
    """Of an architecture's real graph every role but the first reads another one, but where names do not tell."""
    edges = role_edges(stored_record.graphs[-1:])
    roles = {operator.role for operator in timed_operators(stored_record.graphs[-1])}
    assert {each.source for each in edges} | {each.target for each in edges} <= roles
    assert roles - {each.target for each in edges} == {"embd", "attn_out"}
    for pair in (("attn_norm", "Qcur"), ("ffn_gate", "ffn_swiglu"), ("l_out", "attn_norm")):
        assert RoleEdge(source=pair[0], target=pair[1]) in edges
