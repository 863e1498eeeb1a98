"""Roles of recorded operators."""

from __future__ import annotations

from perfsuite.records.events import EngineRecord, Node, Tensor
from perfsuite.trace.operators import timed_operators


def _tensor(name: str, type_name: str = "f32") -> Tensor:
    return Tensor(name=name, type=type_name, ne=(8, 1, 1, 1), nb=(4, 32, 32, 32))


def _node(name: str, op: str, *sources: str, timed: bool = True, fused: bool = False) -> Node:
    return Node(tensor=_tensor(name), op=op, timed=timed, fused=fused, sources=tuple(_tensor(each) for each in sources))


def test_the_layer_number_is_dropped_from_the_role() -> None:
    """``ffn_gate-17`` plays the role ``ffn_gate`` in layer 17."""
    (operator,) = timed_operators([_node("ffn_gate-17", "MUL_MAT", "blk.17.ffn_gate.weight", "x")])
    assert (operator.role, operator.layer) == ("ffn_gate", 17)


def test_a_cache_is_called_without_its_view_and_layer() -> None:
    """A store into ``cache_k_l3 (view)`` plays the role ``cache_k``."""
    (operator,) = timed_operators([_node("cache_k_l3 (view)", "SET_ROWS", "Kcur-3 (view)", "idxs")])
    assert (operator.role, operator.layer) == ("cache_k", 3)


def test_a_fused_pair_is_one_operator_without_the_tensor_between() -> None:
    """RMS_NORM and the MUL after it become one, which reads the norm's input and the weight."""
    graph = [
        _node("norm-0", "RMS_NORM", "embd"),
        _node("attn_norm-0", "MUL", "norm-0", "blk.0.attn_norm.weight", timed=False, fused=True),
    ]
    (operator,) = timed_operators(graph)
    assert (operator.role, operator.op) == ("attn_norm", "RMS_NORM+MUL")
    assert [source.name for source in operator.sources] == ["embd", "blk.0.attn_norm.weight"]


def test_a_second_operator_of_one_name_carries_its_operator() -> None:
    """A rotation of ``Qcur-0`` after its product is ``Qcur_rope``."""
    graph = [_node("Qcur-0", "MUL_MAT", "blk.0.attn_q.weight", "x"), _node("Qcur-0", "ROPE", "Qcur-0", "inp_pos")]
    assert [operator.role for operator in timed_operators(graph)] == ["Qcur", "Qcur_rope"]


def test_untimed_nodes_have_no_role() -> None:
    """Views and reshapes are left out."""
    assert timed_operators([_node("Qcur-0", "RESHAPE", "Qcur-0", timed=False)]) == ()


def test_an_unnamed_product_is_called_by_its_weight() -> None:
    """A product that the engine leaves unnamed takes the name of its weight, the attention's output that of Llama."""
    graph = [_node("node_9", "MUL_MAT", "blk.0.attn_output.weight", "x"), _node("node_10", "MUL_MAT", "a.weight", "x")]
    assert [operator.role for operator in timed_operators(graph)] == ["attn_out", "a"]


def test_a_stored_graph_names_every_role_once(stored_record: EngineRecord) -> None:
    """Prefill and decode of a Llama share the same 22 roles."""
    prefill, decode = ([each.role for each in timed_operators(graph)] for graph in stored_record.graphs)
    roles = list(dict.fromkeys(prefill))
    assert roles == list(dict.fromkeys(decode))
    assert len(roles) == 22
    assert roles[0] == "embd"
    assert roles[-1] == "result_output"
