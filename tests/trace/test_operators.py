"""Roles of recorded operators."""

from __future__ import annotations

from perfsuite.records.events import EngineRecord, Node, Tensor
from perfsuite.testing.engine_traces import node, small_graph, tensor
from perfsuite.trace.operators import n_positions_of, n_tokens_of, timed_operators, traced_operators
from tests.synthetic_statistics import attention, product


def test_roles_are_those_of_the_expectation() -> None:
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


def _tensor(name: str, type_name: str = "f32") -> Tensor:
    return Tensor(name=name, type=type_name, ne=(8, 1, 1, 1), nb=(4, 32, 32, 32))


def _node(name: str, op: str, *sources: str, timed: bool = True, fused: bool = False) -> Node:
    return Node(tensor=_tensor(name), op=op, timed=timed, fused=fused, sources=tuple(_tensor(each) for each in sources))


def test_the_layer_number_is_dropped_from_the_role() -> None:
    (operator,) = timed_operators([_node("ffn_gate-17", "MUL_MAT", "blk.17.ffn_gate.weight", "x")])
    assert (operator.role, operator.layer) == ("ffn_gate", 17)
    (operator,) = timed_operators([_node("cache_k_l3 (view)", "SET_ROWS", "Kcur-3 (view)", "idxs")])
    assert (operator.role, operator.layer) == ("cache_k", 3)
    graph = [_node("Qcur-0", "MUL_MAT", "blk.0.attn_q.weight", "x"), _node("Qcur-0", "ROPE", "Qcur-0", "inp_pos")]
    assert [operator.role for operator in timed_operators(graph)] == ["Qcur", "Qcur_rope"]
    assert timed_operators([_node("Qcur-0", "RESHAPE", "Qcur-0", timed=False)]) == ()


def test_embeddings_have_one_role_in_every_release() -> None:
    names = ("embd", "inp_embd", "node_0")
    graphs = ([_node(name, "GET_ROWS", "token_embd.weight", "inp_tokens")] for name in names)
    assert [operator.role for graph in graphs for operator in timed_operators(graph)] == ["embd"] * 3


def test_releases_that_name_less_have_the_same_roles() -> None:
    """A product that a bias is added to goes by the bias, and the two operators of a gated unit are one role."""
    graph = [
        _node("node_3", "MUL_MAT", "blk.0.attn_q.weight", "attn_norm-0"),
        _node("Qcur-0", "ADD", "node_3", "blk.0.attn_q.bias"),
        _node("ffn_silu-0", "SILU", "ffn_gate-0"),
        _node("ffn_gate_par-0", "MUL", "ffn_silu-0", "ffn_up-0"),
        _node("__fattn__-0", "FLASH_ATTN_EXT", "Qcur-0", "cache_k_l0"),
        _node(" (copy)", "CPY", "leaf_14"),
    ]
    roles = [(operator.role, operator.layer) for operator in timed_operators(graph)]
    unit = ("ffn_swiglu", 0)
    assert roles == [("Qcur", 0), ("Qcur_add", 0), unit, unit, ("flash_attn_ext", 0), ("cpy", None)]


def test_a_fused_pair_is_one_operator_without_the_tensor_between() -> None:
    graph = [
        _node("norm-0", "RMS_NORM", "embd"),
        _node("attn_norm-0", "MUL", "norm-0", "blk.0.attn_norm.weight", timed=False, fused=True),
    ]
    (operator,) = timed_operators(graph)
    assert (operator.role, operator.op) == ("attn_norm", "RMS_NORM+MUL")
    assert [source.name for source in operator.node.sources] == ["embd", "blk.0.attn_norm.weight"]


def test_an_unnamed_product_is_called_by_its_weight() -> None:
    """The name of the weight, Llama's for attention's output; outside the layers there is no layer."""
    graph = [_node("node_9", "MUL_MAT", "blk.0.attn_output.weight", "x"), _node("node_10", "MUL_MAT", "a.weight", "x")]
    assert [operator.role for operator in timed_operators(graph)] == ["attn_out", "a"]
    graph = [
        _node("kqv_out-1", "CONT", "x"),
        _node("node_8", "MUL_MAT", "blk.1.attn_output.weight", "kqv_out-1"),
        _node("node_9", "ADD", "node_8", "blk.1.attn_output.bias"),
        _node("node_10", "MUL_MAT", "token_embd.weight", "result_norm"),
    ]
    named = [(each.role, each.layer) for each in timed_operators(graph)]
    assert named[1:] == [("attn_out", 1), ("attn_out_add", 1), ("result_output", None)]


def test_a_product_with_a_hadamard_matrix_is_a_transform() -> None:
    """What is turned for a quantised cache takes its name from what is turned, and the engine's own way to do it."""
    graph = [
        _node("Vcur-3", "MUL_MAT", "blk.3.attn_v.weight", "x"),
        _node("node_7", "MUL_MAT", "attn_inp_v_rot", "Vcur-3 (reshaped)"),
    ]
    turned = timed_operators(graph)[1]
    assert (turned.role, turned.op, turned.layer) == ("Vcur_rot", "FWHT", 3)


def test_an_unnamed_tensor_is_called_by_what_it_is_made_from() -> None:
    """A scale of ``Qcur-0``, what follows from it, and a view of what has no name, are reported by their operators."""
    graph = [
        _node("Qcur-0", "MUL_MAT", "blk.0.attn_q.weight", "x"),
        _node("node_2", "SCALE", "Qcur-0"),
        _node("node_3", "TANH", "node_2"),
        _node("node_4", "MUL_MAT", "attn_inp_k_rot", " (reshaped)"),
    ]
    named = [(each.role, each.layer) for each in timed_operators(graph)]
    assert named == [("Qcur", 0), ("Qcur_scale", 0), ("Qcur_tanh", 0), ("Qcur_rot", 0)]


def test_rows_that_are_gathered_pass_their_name_on() -> None:
    """A sum of gathered rows is called like that of all rows; an adapter's products by their weight."""
    graph = [
        _node("kqv_out-1", "CONT", "x"),
        _node("node_1", "MUL_MAT", "blk.1.attn_output.weight", "kqv_out-1"),
        _node("node_2", "GET_ROWS", "node_1", "out_ids"),
        _node("node_3", "ADD", "node_2", "l_out-0"),
    ]
    assert [each.role for each in timed_operators(graph)][1:] == ["attn_out", "attn_out_rows", "attn_out_add"]
    weight = "blk.2.ffn_down.weight"
    graph = [
        _node("node_1", "MUL_MAT", weight, "x"),
        _node("node_2", "MUL_MAT", f"{weight}.lora_a", "x"),
        _node("node_3", "MUL_MAT", f"{weight}.lora_b", "node_2"),
        _node("node_4", "SCALE", "node_3"),
        _node("ffn_out-2", "ADD", "node_1", "node_4"),
    ]
    roles = ["ffn_down", "ffn_down_lora_a", "ffn_down_lora_b", "ffn_down_lora_b_scale", "ffn_out"]
    assert [(each.role, each.layer) for each in timed_operators(graph)] == [(role, 2) for role in roles]


def test_a_stored_graph_names_every_role_once(stored_record: EngineRecord) -> None:
    prefill, decode = ([each.role for each in timed_operators(graph)] for graph in stored_record.graphs)
    roles = list(dict.fromkeys(prefill))
    assert (roles, len(roles), roles[0], roles[-1]) == (list(dict.fromkeys(decode)), 22, "embd", "result_output")
