from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.workload.scenario import find_scenario, scenario_names
from perfsuite.workload.variant import find_variant


@pytest.mark.parametrize(
    ("name", "weights", "kv", "lora", "fused"),
    [
        ("bf16-bf16", "bf16", "bf16", False, False),
        ("bf16-int4", "int4", "bf16", False, False),
        ("bf16-int4-fused", "int4", "bf16", False, True),
        ("bf16-int4-kv4", "int4", "int4", False, True),
        ("bf16-int4-mla", "int4", "bf16", False, True),
        ("bf16-int4-lora", "int4", "bf16", True, True),
        ("QuaRot-w4a4kv4", "int4", "int4", False, True),
        ("fp16-fp16", "fp16", "fp16", False, False),
    ],
)
def test_a_variant_has_the_flags_of_the_paper(name: str, weights: str, kv: str, lora: bool, fused: bool) -> None:
    """Weights, KV cache, adapters and fused attention are as LIFE's table of variants says."""
    variant = find_variant(name)
    assert (variant.weights, variant.kv, variant.lora, variant.fused) == (weights, kv, lora, fused)
    assert (variant.activations == "int8") is (name == "QuaRot-w4a4kv4")


def test_the_four_classes_have_two_sets_of_lengths() -> None:
    """Short and long input and output, the short one first; the lengths of real use are longer in each respect."""
    found = {name: find_scenario(name) for name in scenario_names()}
    assert [(name, each.n_prompt, each.n_gen, each.n_depth) for name, each in found.items()] == [
        *(("siso", 64, 24, 0), ("liso", 512, 24, 0), ("silo", 64, 128, 0), ("lilo", 512, 128, 0)),
        *(("siso-long", 128, 128, 0), ("liso-long", 2048, 128, 0)),
        *(("silo-long", 128, 1024, 0), ("lilo-long", 2048, 1024, 0)),
    ]
    assert found["lilo"].n_ctx == 640


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_lengths_can_be_given_in_the_name(n_prompt: int, n_gen: int, n_depth: int) -> None:
    name = f"p{n_prompt}-g{n_gen}-d{n_depth}"
    found = find_scenario(name)
    assert (found.name, found.n_prompt, found.n_gen, found.n_depth) == (name, n_prompt, n_gen, n_depth)
    assert find_scenario(f"p{n_prompt}-g{n_gen}").n_depth == 0
