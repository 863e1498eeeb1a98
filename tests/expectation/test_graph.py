"""The analytical graph, from architectures alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import astuple, replace
from typing import Any

import pytest

from perfsuite.expectation.graph import Batch, Operator, Settings, engine_graph, refusal, total_cost
from perfsuite.expectation.graphs.operator import row_bytes, shape, with_distinct_roles
from perfsuite.records.op_cost import OpCost
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import find, names
from perfsuite.workload.quantization import tensor_types
from perfsuite.workload.tensors import tensor_specs
from perfsuite.workload.weights import Weights
from tests.catalogue_workloads import catalogue_weights


def _operator(role: str, op: str, layer: int | None = 0) -> Operator:
    x = shape("F32", 8)
    return Operator(role=role, op=op, layer=layer, output=x, sources=(x,), cost=OpCost(flops=8))


def test_a_later_operator_of_another_kind_carries_it() -> None:
    """The second kind under one name in a layer is named by its operator; the first kind and other layers are not."""
    given = [
        _operator("Qcur", "MUL_MAT"),
        _operator("Qcur", "ROPE"),
        _operator("Qcur", "MUL_MAT"),
        _operator("Qcur", "ROPE", layer=1),
    ]
    assert [each.role for each in with_distinct_roles(given)] == ["Qcur", "Qcur_rope", "Qcur", "Qcur"]


ROUTED = Batch(n_tokens=5, n_outputs=5, n_used=5, n_ctx=256)


def layer_of(name: str, **moe: object) -> dict[str, Operator]:
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


ADAPTED = Batch(n_tokens=3, n_outputs=3, n_used=3, n_ctx=256)
RANK = 8


def adapted(name: str, **settings: Any) -> tuple[Weights, tuple[Operator, ...]]:
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


def test_latent_projections_are_not_adapted() -> None:
    """Of absorbed latent attention the engine adapts the output projection alone."""
    _, graph = adapted("deepseek-v2-lite", lora_rank=RANK)
    roles = {each.role.removesuffix("_lora_a") for each in graph if each.role.endswith("_lora_a")}
    assert {role for role in roles if role.startswith("attn")} == {"attn_out"}
    assert {"ffn_gate_inp", "ffn_down_exps", "ffn_up_shexp", "ffn_gate"} <= roles


DECODE = Batch(n_tokens=1, n_outputs=1, n_used=65, n_ctx=256)
SMALL = catalogue_weights("smollm2-135m-q8_0")

#: One catalogue entry of each GGUF architecture, cut in depth.
ONE_OF_EACH = tuple(
    catalogue_weights(f"{name}-l4-q4_0") for name in {find(name).gguf_architecture: name for name in names()}.values()
)


def graph(weights: Weights, batch: Batch = DECODE, settings: Settings | None = None) -> tuple[Operator, ...]:
    return engine_graph(weights.architecture, weights.tensor_types, batch, settings or usual(weights.architecture))


def usual(architecture: Architecture) -> Settings:
    return Settings(flash_attn=architecture.family.flash_attention)


def accepted(weights: Weights) -> Iterator[Settings]:
    """Yield every combination of a few settings that the engine accepts."""
    for flash_attn in (True, False):
        for type_k, type_v in (("f16", "f16"), ("q8_0", "q8_0"), ("q4_0", "q4_0"), ("q8_0", "f16"), ("f32", "f32")):
            for lora_rank in (None, 8):
                settings = Settings(flash_attn=flash_attn, type_k=type_k, type_v=type_v, lora_rank=lora_rank)
                if refusal(weights.architecture, settings) is None:
                    yield settings


@pytest.mark.parametrize("name", names())
def test_a_decode_step_reads_every_weight_once(name: str) -> None:
    """Each tensor of the file is the parameter of one operator; of the table one row is read, of the experts a few."""
    weights = catalogue_weights(f"{name}-l2-q8_0")
    a = weights.architecture
    n_bytes = {
        spec.name: spec.n_rows * row_bytes(weights.tensor_types[spec.name], spec.ne[0])
        for spec in tensor_specs(a)
        if not spec.name.startswith("rope_")
    }
    table = n_bytes["token_embd.weight"]
    if a.moe is not None:
        for tensor in n_bytes:
            if "_exps." in tensor:
                n_bytes[tensor] = n_bytes[tensor] // a.moe.n_experts * a.moe.n_experts_used
    read_whole = sum(n_bytes.values()) - (0 if a.tied_embeddings else table)
    assert total_cost(graph(weights)).parameter_bytes == read_whole + table // a.n_vocab


@pytest.mark.parametrize("flash_attn", [True, False])
@pytest.mark.parametrize("weights", ONE_OF_EACH, ids=lambda weights: weights.name)
def test_layers_are_alike(weights: Weights, flash_attn: bool) -> None:
    settings = Settings(flash_attn=flash_attn and weights.architecture.family.flash_attention)
    operators = graph(weights, settings=settings)
    layers = [[replace(each, layer=None) for each in operators if each.layer == layer] for layer in range(4)]
    assert layers[1] == layers[2]
    assert (layers[0] == layers[1]) is (weights.architecture.gguf_architecture != "deepseek2")
    rows = {"attn_out_rows", "residual_rows"}
    assert [each for each in layers[3] if each.role not in rows] == layers[2]
    assert {each.role for each in layers[3]} - {each.role for each in layers[2]} == rows


def test_a_role_names_an_operator_of_a_layer_once() -> None:
    """No two operators of a Llama's layer share a role, so that a case id names one thing."""
    for settings in (Settings(), Settings(flash_attn=False), Settings(type_k="q8_0", type_v="q8_0", lora_rank=8)):
        counted = Counter((each.role, each.layer) for each in graph(SMALL, settings=settings))
        assert max(counted.values()) == 1


@pytest.mark.parametrize("weights", ONE_OF_EACH, ids=lambda weights: weights.name)
def test_operators_of_one_role_do_the_same(weights: Weights) -> None:
    for settings in accepted(weights):
        kinds: dict[tuple[str, int | None], set[str]] = {}
        for each in graph(weights, settings=settings):
            kinds.setdefault((each.role, each.layer), set()).add(each.op)
        assert all(len(kind) == 1 for kind in kinds.values())


@pytest.mark.long_but_first
@pytest.mark.parametrize("weights", ONE_OF_EACH, ids=lambda weights: weights.name)
def test_costs_are_counts_that_grow(weights: Weights) -> None:
    """With any settings every cost is a count of 0 or more, and grows, if at all, with tokens and with context."""
    few = Batch(n_tokens=7, n_outputs=1, n_used=200, n_ctx=2048)
    for settings in accepted(weights):
        operators = graph(weights, few, settings)
        assert all(isinstance(count, int) and count >= 0 for each in operators for count in astuple(each.cost))
        for larger in (replace(few, n_tokens=9), replace(few, n_used=1000), replace(few, n_outputs=3)):
            more = graph(weights, larger, settings)
            for small, large in zip(operators, more, strict=True):
                assert (small.role, small.layer) == (large.role, large.layer)
                assert all(a <= b for a, b in zip(astuple(small.cost), astuple(large.cost), strict=True))


@pytest.mark.parametrize("weights", ONE_OF_EACH, ids=lambda weights: weights.name)
def test_kv_bytes_are_those_of_the_cache(weights: Weights) -> None:
    """A batch writes its positions into the cache, and reads all that are visible, in the types of the cache."""
    a, batch = weights.architecture, Batch(n_tokens=5, n_outputs=1, n_used=300, n_ctx=1024)
    for settings in accepted(weights):
        k = row_bytes(settings.type_k, a.n_kv_heads * a.head_dim)
        v = row_bytes(settings.type_v, a.n_kv_heads * a.v_head_dim)
        written, read = k + v, k + v
        if a.mla is not None and a.mla.absorbed:  # the values are a part of the keys, and counted again when read
            written = row_bytes(settings.type_k, a.mla.kv_lora_rank + a.mla.qk_rope_head_dim)
            read = written + row_bytes(settings.type_v, a.mla.kv_lora_rank)
        cost = total_cost(graph(weights, batch, settings))
        assert cost.kv_written_bytes == a.n_layers * 5 * written
        assert cost.kv_read_bytes == a.n_layers * 512 * read


@pytest.mark.parametrize("weights", ONE_OF_EACH, ids=lambda weights: weights.name)
def test_a_batch_without_logits_computes_none(weights: Weights) -> None:
    """A batch that gives no logits has its last operators on nothing: no FLOPs of the output matrix."""
    batch = Batch(n_tokens=512, n_outputs=0, n_used=512, n_ctx=1024)
    last = next(each for each in graph(weights, batch) if each.role == "result_output")
    assert (last.cost.flops, last.cost.written_bytes) == (0, 0)
