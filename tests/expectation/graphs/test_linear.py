"""Adapters beside the matrices of the layers."""

from __future__ import annotations

from typing import Any

import pytest

from perfsuite.expectation.graph import Batch, Operator, Settings, engine_graph, total_cost
from perfsuite.workload.tensors import tensor_specs
from perfsuite.workload.weights import Weights

from ...catalogue_workloads import catalogue_weights

ADAPTED = Batch(n_tokens=3, n_outputs=3, n_used=3, n_ctx=256)
RANK = 8


def adapted(name: str, **settings: Any) -> tuple[Weights, tuple[Operator, ...]]:
    """Describe weights with two layers, and their graph."""
    weights = catalogue_weights(f"{name}-l2-q4_0")
    return weights, engine_graph(weights.architecture, weights.tensor_types, ADAPTED, Settings(**settings))


@pytest.mark.parametrize("name", ["smollm2-135m", "qwen2.5-0.5b", "pythia-70m", "phi-4-mini"])
def test_an_adapter_costs_its_two_products(name: str) -> None:
    """Rank r adds r (in + out) F32 parameters to each matrix of the layers, and 2 n (r (in + out) + out) FLOPs."""
    weights, graph = adapted(name)
    plain, more = total_cost(graph), total_cost(adapted(name, lora_rank=RANK)[1])
    matrices = [spec.ne for spec in tensor_specs(weights.architecture) if len(spec.ne) == 2 and "blk." in spec.name]
    elements = RANK * sum(n_in + n_out for n_in, n_out in matrices)
    assert more.parameter_bytes - plain.parameter_bytes == 4 * elements
    assert more.flops - plain.flops == 3 * (2 * elements + 2 * sum(n_out for _, n_out in matrices))
    assert more.n_dispatches - plain.n_dispatches == 4 * len(matrices)


def test_a_larger_type_makes_a_larger_adapter() -> None:
    """An adapter in F16 has half the parameters of one in F32, and the same FLOPs."""
    plain, half, whole = (
        total_cost(adapted("smollm2-135m", **settings)[1])
        for settings in ({}, {"lora_rank": RANK, "lora_type": "f16"}, {"lora_rank": RANK})
    )
    assert 2 * (half.parameter_bytes - plain.parameter_bytes) == whole.parameter_bytes - plain.parameter_bytes
    assert half.flops == whole.flops


def test_latent_projections_are_not_adapted() -> None:
    """Of absorbed latent attention the engine adapts the output projection alone."""
    _, graph = adapted("deepseek-v2-lite", lora_rank=RANK)
    roles = {each.role.removesuffix("_lora_a") for each in graph if each.role.endswith("_lora_a")}
    assert {role for role in roles if role.startswith("attn")} == {"attn_out"}
    assert {"ffn_gate_inp", "ffn_down_exps", "ffn_up_shexp", "ffn_gate"} <= roles
