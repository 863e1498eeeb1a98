"""Whole passes as llama.cpp computes them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfsuite.expectation.graph import Batch, Settings, engine_graph, total_cost
from perfsuite.expectation.requests.engine_passes import EnginePasses, LayerPattern, layer_pattern, operator_kind
from perfsuite.expectation.requests.subject import (
    EngineRequest,
    Optimisations,
    Subject,
    engine_request,
    find_any_subject,
    with_latent_attention,
)
from perfsuite.records.op_cost import NO_COST, OpCost
from perfsuite.workload.catalog import find, names
from perfsuite.workload.quantization import tensor_types
from perfsuite.workload.tensors import tensor_specs
from perfsuite.workload.variant import find_variant, variant_names

from ...catalogue_workloads import catalogue_weights

LLAMA2 = find_any_subject("llama-2-7b")


def requested(variant: str | None, subject: Subject = LLAMA2, **changes: Any) -> EngineRequest:
    found = None if variant is None else find_variant(variant)
    return engine_request(subject, Optimisations(variant=found, **changes))


@pytest.mark.parametrize(
    ("variant", "changes", "weights", "settings"),
    [
        ("bf16-bf16", {}, "BF16", Settings(flash_attn=False)),
        ("bf16-int4", {}, "Q4_0", Settings(flash_attn=False)),
        ("bf16-int4-fused", {}, "Q4_0", Settings()),
        ("bf16-int4-kv4", {}, "Q4_0", Settings(type_k="q4_0", type_v="q4_0")),
        ("bf16-int4-lora", {}, "Q4_0", Settings(lora_rank=16)),
        ("bf16-int4-lora", {"lora_merged": True}, "Q4_0", Settings()),
        ("QuaRot-w4a4kv4", {}, "Q4_0", Settings(type_k="q4_0", type_v="q4_0")),
        ("fp16-fp16", {}, "F16", Settings(flash_attn=False)),
        (
            *("bf16-int4-kv4", {"quantization": "q8_0", "kv_type": "int8", "lora_rank": 4}, "Q8_0"),
            Settings(type_k="q8_0", type_v="q8_0", lora_rank=4),
        ),
        (None, {"quantization": "q8_0"}, "Q8_0", Settings()),
    ],
)
def test_variants_become_types_and_settings(
    variant: str | None, changes: dict[str, Any], weights: str, settings: Settings
) -> None:
    """Weights, cache, flash attention and adapters follow from the variant, and options take its place."""
    request = requested(variant, **changes)
    assert request.tensor_types["blk.5.ffn_up.weight"] == weights
    assert request.settings == settings
    assert request.architecture == LLAMA2.architecture


def test_tensors_of_the_subjects_own_count() -> None:
    request = requested("bf16-int4", find_any_subject("smollm2-135m-q8_0"))
    assert request.tensor_types["blk.5.ffn_up.weight"] == "Q8_0"


def test_latent_attention_is_derived() -> None:
    """Widths, depth and vocabulary stay; the cache holds one latent head of 128 + 64."""
    request = requested("bf16-int4-mla")
    derived = request.architecture
    assert derived == with_latent_attention(LLAMA2.architecture)
    assert derived.gguf_architecture == "deepseek2"
    assert (derived.n_embd, derived.n_layers, derived.n_ff, derived.n_vocab) == (4096, 32, 11008, 32000)
    assert derived.mla is not None
    assert (derived.n_kv_heads, derived.mla.kv_lora_rank, derived.mla.qk_rope_head_dim) == (1, 128, 64)
    assert not any("exps" in spec.name for spec in tensor_specs(derived))
    assert request.settings == Settings()


@pytest.mark.parametrize(
    ("name", "quantization", "depths", "n_repeats"),
    [("llama-2-7b", "q4_0", (1, 2), 31), ("gemma-2-2b", "f16", (2, 4), 12), ("deepseek-v2-lite", "q8_0", (2, 3), 25)],
)
def test_alike_layers_are_told_by_two_depths(
    name: str, quantization: str, depths: tuple[int, int], n_repeats: int
) -> None:
    """What the second depth adds repeats; windowed layers do so in pairs, and leading dense ones are before them."""
    pattern = layer_pattern(find(name), tensor_types(find(name), quantization))
    assert pattern == LayerPattern(depths=depths, n_repeats=n_repeats)


def test_layers_that_differ_or_are_few_have_no_pattern() -> None:
    """A mixture, a single tensor of another type, and no more layers than the pattern would take."""
    odd = {**tensor_types(LLAMA2.architecture, "q4_0"), "blk.17.ffn_up.weight": "Q8_0"}
    for differing in (tensor_types(LLAMA2.architecture, "q4_k_m"), odd):
        assert layer_pattern(find("llama-2-7b"), differing) is None
    for depth in (1, 2):
        few = find("llama-2-7b").with_layers(depth)
        assert layer_pattern(few, tensor_types(few, "q4_0")) is None


BATCH = Batch(n_tokens=3, n_outputs=1, n_used=40, n_ctx=256)


def kinds(name: str, settings: Settings) -> dict[str, set[str]]:
    weights = catalogue_weights(name)
    found = defaultdict(set)
    for operator in engine_graph(weights.architecture, weights.tensor_types, BATCH, settings):
        found[operator_kind(operator)].add(operator.role)
    return found


@pytest.mark.parametrize("name", names())
def test_every_operator_of_the_catalogue_has_a_kind(name: str) -> None:
    known = {
        *("embedding", "gemm", "bmm", "attention", "softmax", "norm", "rope", "activation", "elementwise"),
        *("kv_store", "rotation", "routing", "copy", "gather"),
    }
    quantization = "f16" if name == "gemma-2-2b" else "q8_0"
    assert kinds(f"{name}-l4-{quantization}", Settings(flash_attn=False)).keys() <= known


N_CTX = 4096


def request_of(name: str, quantization: str, **options: object) -> EngineRequest:
    architecture = find(name)
    types: Mapping[str, str] = tensor_types(architecture, quantization)
    return EngineRequest(architecture=architecture, tensor_types=types, settings=Settings(**options))  # type: ignore[arg-type]


def by_graph(request: EngineRequest, *batches: Batch) -> OpCost:
    graphs = (engine_graph(request.architecture, request.tensor_types, batch, request.settings) for batch in batches)
    return sum((total_cost(graph) for graph in graphs), start=NO_COST)


def step(n_used: int, n_tokens: int = 1) -> Batch:
    """A decode step that sees so many positions of a large cache."""
    return Batch(n_tokens=n_tokens, n_outputs=n_tokens, n_used=n_used, n_ctx=N_CTX)


@pytest.mark.parametrize(
    ("name", "flash_attn"),
    [(name, flag) for name in names() for flag in (True, False) if find(name).family.flash_attention or not flag],
)
def test_repeated_layers_cost_what_the_whole_graph_does(name: str, flash_attn: bool) -> None:
    request = request_of(name, "q8_0", flash_attn=flash_attn)
    passes = EnginePasses(request)
    prefill = (
        Batch(n_tokens=512, n_outputs=0, n_used=512, n_ctx=N_CTX),
        Batch(n_tokens=88, n_outputs=1, n_used=600, n_ctx=N_CTX),
    )
    assert passes.prefill(600).total == by_graph(request, *prefill)
    assert passes.decode(600, 1).at(0).total == by_graph(request, step(601))


@pytest.mark.parametrize("quantization", ["q4_k_m", "q4_0"])
def test_mixtures_cost_what_the_whole_graph_does(quantization: str) -> None:
    """Layers of different types are counted one by one, alike ones together, to the same effect."""
    request = request_of("llama-3.2-1b", quantization, type_k="q8_0", type_v="q8_0", lora_rank=8)
    assert EnginePasses(request).decode(900, 1).at(0).total == by_graph(request, step(901))


@pytest.mark.parametrize("name", variant_names())
def test_every_variant_costs_what_its_graph_does(name: str) -> None:
    """Each of the paper's variants equals the sum over its graph, the derived latent attention included."""
    request = engine_request(LLAMA2, Optimisations(variant=find_variant(name)))
    batch = Batch(n_tokens=64, n_outputs=1, n_used=64, n_ctx=N_CTX)
    passes = EnginePasses(request)
    assert passes.prefill(64).total == by_graph(request, batch)
    assert passes.decode(64, 1).at(0).total == by_graph(request, step(65))


def test_every_step_is_the_graph_of_what_it_sees() -> None:
    """Over a boundary of 256 positions and beyond, each step is that of its own batch."""
    request = request_of("smollm2-135m", "q8_0")
    steps = EnginePasses(request).decode(250, 300)
    assert steps.n_steps == 300
    for at in (0, 5, 6, 261, 262, 299):
        assert steps.at(at).total == by_graph(request, step(251 + at))
    assert steps.total.flops[5] < steps.total.flops[6]


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 300), st.integers(1, 300))
def test_smaller_chunks_read_the_weights_more_often(n_prompt: int, chunk: int) -> None:
    """Dispatches and weights are those of as many evaluations as there are chunks."""
    request = request_of("smollm2-135m", "q8_0")
    whole = EnginePasses(request).prefill(n_prompt).total
    chunked = EnginePasses(request, chunk=chunk).prefill(n_prompt).total
    assert chunked.n_dispatches == whole.n_dispatches * -(-n_prompt // chunk)
    assert chunked.parameter_bytes >= whole.parameter_bytes
    assert chunked.kv_written_bytes == whole.kv_written_bytes


def test_sequences_share_the_weights_and_nothing_else() -> None:
    """Four sequences read the weights once, but the caches and the embeddings of four, however attention runs."""
    for options in ({}, {"flash_attn": False}, {"type_k": "f32", "type_v": "f32"}):
        request = request_of("llama-2-7b", "q4_0", **options)
        one = EnginePasses(request).decode(600, 1).at(0)
        four = EnginePasses(request, n_sequences=4).decode(600, 1).at(0)
        assert four.total.n_dispatches == one.total.n_dispatches
        assert four.total.flops == 4 * one.total.flops
        assert four.total.kv_bytes == 4 * one.total.kv_bytes
        assert four.by_operator["gemm"].parameter_bytes == one.by_operator["gemm"].parameter_bytes
        rest = {name: total.read_bytes - total.parameter_bytes for name, total in four.by_operator.items()}
        assert rest == {name: 4 * (cost.read_bytes - cost.parameter_bytes) for name, cost in one.by_operator.items()}


def test_values_of_several_sequences_may_be_copied() -> None:
    """A fused projection's values are in one piece for one token, and are copied for a rotation of more."""
    request = request_of("phi-4-mini", "q4_0", type_k="q4_0", type_v="q4_0")
    one, three = (EnginePasses(request, n_sequences=n).decode(600, 1).at(0) for n in (1, 3))
    assert "copy" not in one.by_operator
    assert three.by_operator["copy"].moved_bytes == 32 * 2 * 4 * 3 * 8 * 128
    assert three.total.kv_bytes == 3 * one.total.kv_bytes


def test_a_step_may_have_several_tokens() -> None:
    """The check of a draft is one evaluation of which every token gives logits."""
    request = request_of("smollm2-135m", "q8_0")
    steps = EnginePasses(request).decode(100, 2, n_tokens=5)
    assert steps.at(1).total == by_graph(request, step(106, n_tokens=5))
