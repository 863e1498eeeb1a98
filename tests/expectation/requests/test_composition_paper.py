"""Whole passes under the paper's conventions."""

from __future__ import annotations

from typing import Any

import pytest

from perfsuite.expectation.paper.passes import decode_pass, prefill_pass
from perfsuite.expectation.requests.composition import PaperPasses
from perfsuite.expectation.requests.subject import Optimisations
from perfsuite.records.op_cost import NO_COST
from perfsuite.workload.catalog import find
from perfsuite.workload.variant import find_variant, variant_names

LLAMA = find("llama-2-7b")


def passes(variant: str = "bf16-int4-kv4", **changes: Any) -> PaperPasses:
    """The passes of Llama2-7B."""
    return PaperPasses(LLAMA, Optimisations(variant=find_variant(variant), **changes))


@pytest.mark.parametrize("name", variant_names())
def test_passes_are_the_papers(name: str) -> None:
    variant = find_variant(name)
    assert passes(name).prefill(256).by_operator == prefill_pass(LLAMA, variant, 256).by_operator
    steps = passes(name).decode(128, 2000)
    assert steps.n_steps == 2000
    for at in (0, 1, 777, 1999):
        alone = decode_pass(LLAMA, variant, 128 + at)
        assert steps.at(at).by_operator == alone.by_operator
        assert steps.total.moved_bytes[at] == alone.total.moved_bytes


def test_chunks_and_ranks_are_passed_on() -> None:
    """A chunk and the rank of the adapters reach the paper's composition; merged adapters cost nothing."""
    lora, fused = find_variant("bf16-int4-lora"), find_variant("bf16-int4-fused")
    expected = prefill_pass(LLAMA, lora, 256, lora_rank=64, chunk=64)
    assert passes("bf16-int4-lora", lora_rank=64, chunk=64).prefill(256).by_operator == expected.by_operator
    assert passes("bf16-int4-lora", lora_merged=True).prefill(64).total == prefill_pass(LLAMA, fused, 64).total
    assert passes("bf16-int4-fused", lora_rank=16).prefill(64).total == prefill_pass(LLAMA, lora, 64).total


@pytest.mark.parametrize("name", variant_names())
@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_sequences_share_the_weights_and_nothing_else(name: str, phase: str) -> None:
    """Three sequences read parameters, dequantise weights, compute adapters and dispatch once."""
    batches = [passes(name, n_sequences=n) for n in (1, 3)]
    one, three = (each.prefill(64) if phase == "prefill" else each.decode(64, 1).at(0) for each in batches)
    for key in ("parameter_bytes", "n_dispatches"):
        assert getattr(three.total, key) == getattr(one.total, key)
    for kind in ("gemm", "bmm", "softmax", "norm"):
        assert three.by_operator[kind].flops == 3 * one.by_operator[kind].flops
    assert three.total.kv_bytes == 3 * one.total.kv_bytes
    assert three.by_operator.get("lora", NO_COST).flops == one.by_operator.get("lora", NO_COST).flops


def test_a_tile_pads_prompt_and_context() -> None:
    """With tiles of 64 a prompt of 100 is one of 128, and each step sees a multiple of 64 positions."""
    tiled, plain = passes(tile=64), passes()
    assert tiled.prefill(100).total == plain.prefill(128).total
    steps = tiled.decode(100, 40)
    for at, n_past in ((0, 127), (27, 127), (28, 191), (39, 191)):
        assert steps.at(at).total == plain.decode(n_past, 1).at(0).total


def test_a_step_of_several_tokens_is_a_short_prompt() -> None:
    """The check of a draft is a prefill after what came before, at every step."""
    steps = passes().decode(100, 50, n_tokens=5)
    for at in (0, 1, 49):
        expected = prefill_pass(LLAMA, find_variant("bf16-int4-kv4"), 5, n_past=100 + at)
        assert steps.at(at).by_operator == expected.by_operator


@pytest.mark.parametrize(("chunk", "n_keys"), [(None, 64), (16, 16 + 32 + 48 + 64)])
def test_each_chunk_dequantises_the_weights_once(chunk: int | None, n_keys: int) -> None:
    """Of three sequences the weights once a chunk, and the keys that each sees three times; so in a decode step."""
    one, three = (passes(n_sequences=n, chunk=chunk) for n in (1, 3))
    prompts = [each.prefill(64).by_operator["dequantize"].flops for each in (one, three)]
    steps = [each.decode(64, 1).at(0).by_operator["dequantize"].flops for each in (one, three)]
    assert prompts[1] - prompts[0] == 2 * (2 * n_keys * 4096 * 32)
    assert steps[1] - steps[0] == 2 * (2 * 65 * 4096 * 32)
