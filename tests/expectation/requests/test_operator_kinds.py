"""The kinds of the engine's operators."""

from __future__ import annotations

from collections import defaultdict

import pytest

from perfsuite.expectation.graph import Batch, Settings, engine_graph
from perfsuite.expectation.requests.operator_kinds import operator_kind
from perfsuite.workload.catalog import names

from ...catalogue_workloads import catalogue_weights

BATCH = Batch(n_tokens=3, n_outputs=1, n_used=40, n_ctx=256)


def kinds(name: str, settings: Settings) -> dict[str, set[str]]:
    """The roles of each kind of operator in a graph."""
    weights = catalogue_weights(name)
    found = defaultdict(set)
    for operator in engine_graph(weights.architecture, weights.tensor_types, BATCH, settings):
        found[operator_kind(operator)].add(operator.role)
    return found


def test_products_with_parameters_are_told_from_those_of_attention() -> None:
    """Without flash attention scores and mix are bmm; every matrix of the file is gemm."""
    found = kinds("smollm2-135m-l2-q8_0", Settings(flash_attn=False))
    assert found["bmm"] == {"kq", "kqv"}
    assert found["softmax"] == {"kq_soft_max"}
    assert {"Qcur", "Kcur", "Vcur", "attn_out", "ffn_gate", "ffn_up", "ffn_out", "result_output"} == found["gemm"]
    assert found["embedding"] == {"embd"}
    assert found["kv_store"] == {"cache_k", "cache_v"}


def test_flash_attention_is_a_kind_of_its_own() -> None:
    """It holds products and softmax, so it is called neither."""
    found = kinds("smollm2-135m-l2-q8_0", Settings())
    assert found["attention"] == {"flash_attn_ext"}
    assert not found.keys() & {"bmm", "softmax"}


def test_adapters_are_a_kind_of_their_own() -> None:
    """The products of an adapter are lora, the product that they are added to stays gemm."""
    found = kinds("smollm2-135m-l2-q8_0", Settings(lora_rank=8))
    assert {"attn_q_lora_a", "attn_q_lora_b"} <= found["lora"]
    assert not any("lora" in role for role in found["gemm"])


@pytest.mark.parametrize("name", names())
def test_every_operator_of_the_catalogue_has_a_kind(name: str) -> None:
    """No operator that occurs is called by its own name for want of a kind, but for those that are named alike."""
    known = {
        *("embedding", "gemm", "bmm", "attention", "softmax", "norm", "rope", "activation", "elementwise"),
        *("kv_store", "rotation", "routing", "copy", "gather"),
    }
    quantization = "f16" if name == "gemma-2-2b" else "q8_0"
    assert kinds(f"{name}-l4-{quantization}", Settings(flash_attn=False)).keys() <= known
