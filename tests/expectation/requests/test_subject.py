"""What a forecast is about."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.requests.subject import Optimisations, Subject, find_any_subject
from perfsuite.workload.catalog import find
from perfsuite.workload.synthetic import write_synthetic
from perfsuite.workload.variant import find_variant


@pytest.mark.parametrize(
    ("changes", "adapters", "inline"),
    [
        ({}, None, None),
        ({"variant": find_variant("bf16-int4")}, None, None),
        ({"variant": find_variant("bf16-int4-lora")}, 16, 16),
        ({"variant": find_variant("bf16-int4-lora"), "lora_rank": 64}, 64, 64),
        ({"variant": find_variant("bf16-int4"), "lora_rank": 8}, 8, 8),
        ({"variant": find_variant("bf16-int4-lora"), "lora_merged": True}, 16, None),
    ],
)
def test_adapters_are_the_variants_or_named(changes: dict[str, Any], adapters: int | None, inline: int | None) -> None:
    """A rank means adapters; those of a variant have rank 16 by themselves; merged ones run in no pass."""
    optimisations = Optimisations(**changes)
    assert optimisations.adapter_rank == adapters
    assert optimisations.inline_rank == inline


CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 1000,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
}


def test_a_name_with_a_quantisation_has_types() -> None:
    """A quantisation behind the name says what the weights are; the name alone leaves that to the variant."""
    bare, quantised = find_any_subject("llama-2-7b"), find_any_subject("smollm2-135m-l2-q8_0")
    assert bare == Subject(architecture=find("llama-2-7b"))
    assert quantised.architecture == find("smollm2-135m").with_layers(2)
    assert quantised.tensor_types is not None
    assert quantised.tensor_types["blk.1.ffn_up.weight"] == "Q8_0"


def test_a_gguf_file_has_its_own_types(tmp_path: Path) -> None:
    """Architecture and types are those in the file."""
    tiny = replace(find("smollm2-135m"), n_layers=1, n_vocab=384)
    path = tmp_path / "tiny.gguf"
    write_synthetic(tiny, "q4_0", path)
    subject = find_any_subject(str(path))
    assert subject.architecture.n_layers == 1
    assert subject.tensor_types is not None
    assert subject.tensor_types["blk.0.attn_q.weight"] == "Q4_0"


def test_a_config_is_an_architecture(tmp_path: Path) -> None:
    """A config.json is read as Hugging Face writes it, and takes its name from the folder."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG | {"hidden_size": 66}))
    with pytest.raises(ArchitectureError, match=r"num_attention_heads is 4, expected a divisor of hidden_size \(66\)$"):
        find_any_subject(str(path))
    path.write_text(json.dumps(CONFIG | {"hidden_size": 66, "head_dim": 32}))
    found = find_any_subject(str(path))
    assert (found.architecture.name, found.architecture.head_dim, found.tensor_types) == (tmp_path.name, 32, None)
