"""What a row says of its workload."""

from __future__ import annotations

import pytest

from perfsuite.expectation.cases import llama_workload
from perfsuite.expectation.roofline.subject import attention_kind, subject_of
from perfsuite.workload.catalog import find, names
from perfsuite.workload.scenario import find_scenario

from ...catalogue_workloads import catalogue_weights
from ...synthetic_roofline import subject


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "own-q8_0/siso/t2"),
        ({"n_threads": 8}, "own-q8_0/siso/t8"),
        ({"flash_attn": False}, "own-q8_0/siso/no-flash-attn-t2"),
        ({"type_k": "q8_0"}, "own-q8_0/siso/kv-q8_0-f16-t2"),
        ({"type_v": "q4_0"}, "own-q8_0/siso/kv-f16-q4_0-t2"),
        ({"flash_attn": False, "type_k": "f32", "type_v": "f32"}, "own-q8_0/siso/no-flash-attn-kv-f32-f32-t2"),
    ],
)
def test_a_name_holds_what_is_not_usual(changes: dict[str, object], expected: str) -> None:
    """Weights, scenario and threads are always told; flash attention and the cache's types where they differ."""
    assert subject(**changes).name == expected


def test_a_subject_is_its_workload() -> None:
    """Lengths, settings and size are the workload's own."""
    weights = catalogue_weights("smollm2-135m-l2-q4_k_m")
    workload = llama_workload(weights, find_scenario("p5-g6-d7"), flash_attn=False, type_k="f32", type_v="q8_0")
    assert subject_of(workload, 3) == subject(
        weights="smollm2-135m-l2-q4_k_m",
        architecture="smollm2-135m-l2",
        quantization="q4_k_m",
        n_parameters=find("smollm2-135m").with_layers(2).n_parameters,
        n_layers=2,
        scenario="p5-g6-d7",
        n_prompt=5,
        n_gen=6,
        n_depth=7,
        n_threads=3,
        flash_attn=False,
        type_k="f32",
        type_v="q8_0",
    )


def test_flash_attention_is_told_as_it_runs() -> None:
    """Where an architecture has no flash attention the row does not claim it."""
    weights = catalogue_weights("plm-1.8b-l2-q8_0")
    found = subject_of(llama_workload(weights, find_scenario("siso")), 2)
    assert (found.flash_attn, found.attention) == (False, "mla")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("llama-2-7b", "mha"),
        ("smollm2-1.7b", "mha"),
        ("smollm2-135m", "gqa"),
        ("llama-3.2-1b", "gqa"),
        ("plm-1.8b", "mla"),
        ("deepseek-v2-lite", "mla"),
    ],
)
def test_attention_is_named_by_its_heads(name: str, expected: str) -> None:
    """A latent vector is MLA, a key head for each head MHA, and anything between GQA."""
    assert attention_kind(find(name)) == expected


def test_every_architecture_has_a_kind_of_attention() -> None:
    """No entry of the catalogue is beyond the three, and each occurs."""
    assert {attention_kind(find(name)) for name in names()} == {"mha", "gqa", "mla"}
