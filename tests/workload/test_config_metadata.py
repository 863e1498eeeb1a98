from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import ArchitectureError
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import listed
from perfsuite.workload.config_classes import GGUF_ARCHITECTURES
from perfsuite.workload.config_metadata import spec_of_config
from perfsuite.workload.huggingface import CLASSES
from perfsuite.workload.model_spec import ModelSpec

_GEMMA = {
    "architectures": ["Gemma3ForCausalLM"],
    "vocab_size": 262144,
    "hidden_size": 1152,
    "intermediate_size": 6912,
    "num_hidden_layers": 26,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "max_position_embeddings": 32768,
    "sliding_window": 512,
    "rope_theta": 1000000,
    "rope_local_base_freq": 10000,
    "rms_norm_eps": 1e-6,
}
_LFM2 = {
    "architectures": ["Lfm2ForCausalLM"],
    "vocab_size": 65536,
    "hidden_size": 2048,
    "block_ff_dim": 12288,
    "block_multiple_of": 256,
    "block_auto_adjust_ff_dim": True,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "full_attn_idxs": [2, 5, 8, 10, 12, 14],
    "conv_L_cache": 3,
    "norm_eps": 1e-5,
    "rope_theta": 1000000,
    "max_position_embeddings": 128000,
}
_MAMBA2 = {
    "architectures": ["Mamba2ForCausalLM"],
    "vocab_size": 32768,
    "hidden_size": 4096,
    "state_size": 128,
    "conv_kernel": 4,
    "n_groups": 8,
    "expand": 2,
    "head_dim": 64,
    "num_hidden_layers": 64,
    "layer_norm_epsilon": 1e-5,
}


def _spec(config: dict[str, Any]) -> ModelSpec:
    found = spec_of_config(config)
    assert isinstance(found, ModelSpec)
    return found


@pytest.mark.parametrize(
    ("config", "name"), [(_GEMMA, "gemma-3-1b"), (_LFM2, "lfm2-1.2b"), (_MAMBA2, "mamba-codestral-7b")]
)
def test_a_config_becomes_the_catalogues_metadata(config: dict[str, Any], name: str) -> None:
    """Windows, short convolutions and state spaces come out of a published config as the catalogue has them."""
    assert dict(_spec(config).metadata) == dict(listed(name).metadata)


def test_a_known_class_gives_an_architecture() -> None:
    """A class of the families that the suite knows is no model of metadata alone."""
    config = {**_GEMMA, "architectures": ["LlamaForCausalLM"], "head_dim": 288}
    assert isinstance(spec_of_config(config), Architecture)


def test_biases_and_an_output_matrix_are_wanted_where_a_config_says_so() -> None:
    """What a file may lack is asked for by the config's own words."""
    config = {**_GEMMA, "architectures": ["SeedOssForCausalLM"], "attention_bias": True, "tie_word_embeddings": False}
    assert set(_spec(config).wanted) == {"output.weight", "attn_q.bias", "attn_k.bias", "attn_v.bias"}


def test_the_text_part_of_a_config_counts() -> None:
    """Of a model that sees as well, the part that reads and writes text is taken."""
    whole = {"architectures": ["Gemma3ForConditionalGeneration"], "text_config": _GEMMA}
    assert dict(_spec(whole).metadata) == dict(_spec(_GEMMA).metadata)


def test_every_known_class_is_converted() -> None:
    """The classes of the families are among those that llama.cpp converts, to the same architecture."""
    assert {name: GGUF_ARCHITECTURES[name] for name in CLASSES} == dict(CLASSES)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"architectures": ["Nobody"]}, "architecture 'Nobody' is none that llama.cpp converts"),
        ({}, "architecture 'None' is none that llama.cpp converts"),
        ({"architectures": ["Gemma3ForCausalLM"]}, "key 'hidden_size' is missing, which Gemma3ForCausalLM needs"),
        ({**_GEMMA, "architectures": ["Qwen3NextForCausalLM"]}, "key 'linear_conv_kernel_dim' is missing"),
        ({**_LFM2, "num_hidden_layers": "many"}, "is not a config of Lfm2ForCausalLM"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, config: dict[str, Any], message: str) -> None:
    """A config that llama.cpp could not convert is refused with its path and the reason."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    with pytest.raises(ArchitectureError) as raised:
        spec_of_config(path)
    assert str(raised.value).startswith(f"{path}: {message}")
