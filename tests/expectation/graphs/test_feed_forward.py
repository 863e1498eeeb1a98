"""Routed feed-forward blocks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.expectation.graph import Batch, Operator, Settings, engine_graph
from perfsuite.workload.catalog import find
from perfsuite.workload.quantization import tensor_types

ROUTED = Batch(n_tokens=5, n_outputs=5, n_used=5, n_ctx=256)


def layer_of(name: str, **moe: object) -> dict[str, Operator]:
    """Return the operators of the second layer by role, the router's fields replaced."""
    architecture = find(name).with_layers(2)
    assert architecture.moe is not None
    changed = replace(architecture, moe=replace(architecture.moe, **moe))  # type: ignore[arg-type]
    graph = engine_graph(changed, tensor_types(changed, "q8_0"), ROUTED, Settings())
    return {each.role: each for each in graph if each.layer == 1}


@pytest.mark.parametrize("name", ["qwen1.5-moe-a2.7b", "deepseek-v2-lite"])
def test_experts_cost_the_chosen_ones(name: str) -> None:
    """Each of n tokens is multiplied with the matrices of u experts: 2 k m n u FLOPs."""
    a, layer = find(name), layer_of(name)
    assert a.moe is not None
    flops = 2 * a.n_embd * a.moe.n_ff_expert * 5 * a.moe.n_experts_used
    assert {layer[f"ffn_moe_{way}"].cost.flops for way in ("gate", "up", "down")} == {flops}


def test_normalised_and_scaled_weights_are_operators_of_their_own() -> None:
    """A router that makes its weights sum to 1 has a sum, a clamp and a division more; a scale is one more."""
    plain = layer_of("deepseek-v2-lite")
    changed = layer_of("deepseek-v2-lite", normalize_weights=True, weights_scale=2.5)
    weights = {f"ffn_moe_weights_{part}" for part in ("sum", "sum_clamped", "norm", "scaled")}
    assert set(changed) - set(plain) == weights
    assert changed["ffn_moe_weights_norm"].output.ne == (6, 5, 1, 1)


def test_a_single_expert_is_copied_instead_of_summed() -> None:
    """Of one chosen expert there is nothing to add, and its row is copied to lie in one piece."""
    assert layer_of("qwen1.5-moe-a2.7b", n_experts_used=1)["ffn_moe_out"].op == "CONT"
    assert layer_of("qwen1.5-moe-a2.7b", n_experts_used=2)["ffn_moe_out"].op == "ADD"
