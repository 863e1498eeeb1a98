"""What operators read and write, of every architecture whose graph is known."""

from __future__ import annotations

from collections import Counter

import pytest

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.graph import KNOWN_GRAPHS, Operator, engine_graph
from perfsuite.expectation.graphs.operator import shape
from perfsuite.expectation.memory.flow import Flow, flow_of
from perfsuite.expectation.memory.linked_graph import linked_graph
from perfsuite.expectation.memory.need import worst_batch
from perfsuite.expectation.op_cost import NO_COST, OpCost
from perfsuite.workload.catalog import find

from ...catalogue_workloads import catalogue_workload

FAMILIES = {
    "llama": "smollm2-135m-l2-q8_0",
    "qwen2": "qwen2.5-0.5b-l2-q8_0",
    "qwen3": "qwen3-0.6b-l2-q8_0",
    "gemma2": "gemma-2-2b-l2-q8_0",
    "gptneox": "pythia-160m-l2-q8_0",
    "phi3": "phi-4-mini-l2-q8_0",
    "plm": "plm-1.8b-l2-q8_0",
    "qwen2moe": "qwen1.5-moe-a2.7b-l2-q8_0",
    "deepseek2": "deepseek-v2-lite-l2-q8_0",
}
LLAMA = find("smollm2-135m")


def operator(role: str, op: str, *, parameter_bytes: int = 0) -> Operator:
    """An operator of no particular shape."""
    cost = OpCost(read_bytes=parameter_bytes, parameter_bytes=parameter_bytes) if parameter_bytes else NO_COST
    return Operator(role=role, op=op, layer=0, output=shape("f32", 4), sources=(), cost=cost)


def test_every_known_graph_is_followed() -> None:
    """The families below are all whose graph is known."""
    assert set(FAMILIES) == KNOWN_GRAPHS


@pytest.mark.parametrize("flash_attn", [True, False])
@pytest.mark.parametrize("name", FAMILIES.values())
def test_all_but_the_logits_and_the_unused_input_is_read(name: str, *, flash_attn: bool) -> None:
    """Nothing dangles: a tensor that nobody reads would never be freed."""
    workload = catalogue_workload(name, "siso", flash_attn=flash_attn)
    graph = linked_graph(workload, worst_batch(workload))
    readers = Counter(source for tensor in graph for source in tensor.sources)
    unread = [at for at, tensor in enumerate(graph) if tensor.n_bytes is not None and not readers[at]]
    assert unread == [1, len(graph) - 1]


@pytest.mark.parametrize("name", FAMILIES.values())
def test_every_operator_has_one_tensor(name: str) -> None:
    """The linked graph has the operators of the analytical one, and inputs beside them."""
    workload = catalogue_workload(name, "siso")
    weights, batch = workload.weights, worst_batch(workload)
    operators = engine_graph(weights.architecture, weights.tensor_types, batch, workload.settings)
    assert sum(not tensor.is_leaf for tensor in linked_graph(workload, batch)) == len(operators)


@pytest.mark.parametrize(
    ("role", "op", "live", "expected"),
    [
        ("Qcur", "MUL_MAT", ("norm",), Flow(reads=("norm",), writes="q")),
        ("Qcur", "ROPE", ("qkv",), Flow(reads=("~qkv", "positions"), writes="q")),
        ("Kcur_rope", "ROPE", ("k",), Flow(reads=("k", "positions"), writes="k")),
        ("cache_v", "SET_ROWS", ("qkv",), Flow(reads=("~qkv", "v_rows"), writes=None)),
        ("cache_k_cpy", "CPY", (), Flow(reads=(), writes="k_copy")),
        ("cache_k_cpy", "CPY", ("k_copy",), Flow(reads=(), writes="v_copy")),
        ("ffn_swiglu", "SWIGLU", ("up",), Flow(reads=("up",), writes="ffn")),
        ("ffn_swiglu", "SWIGLU", ("gate", "up"), Flow(reads=("gate", "up"), writes="ffn")),
        ("l_out", "ADD", ("ffn", "x"), Flow(reads=("ffn", "x"), writes="x")),
        ("ffn_out", "ADD", ("moe", "shared"), Flow(reads=("moe", "shared"), writes="ffn")),
    ],
)
def test_what_is_live_decides_what_is_read(role: str, op: str, live: tuple[str, ...], expected: Flow) -> None:
    """One role reads other streams where other operators came before it."""
    assert flow_of(operator(role, op), live, LLAMA) == expected


def test_a_bias_reads_what_it_is_added_to() -> None:
    """A sum with a parameter is no sum with the residual."""
    assert flow_of(operator("attn_out_add", "ADD", parameter_bytes=16), ("attn", "x"), LLAMA).reads == ("attn",)
    assert flow_of(operator("attn_out_add", "ADD"), ("attn", "x"), LLAMA).reads == ("attn", "x")


def test_an_unknown_operator_is_refused() -> None:
    """The message names it."""
    with pytest.raises(ArchitectureError, match="'ffn_up_lora_a'"):
        flow_of(operator("ffn_up_lora_a", "MUL_MAT"), (), LLAMA)
