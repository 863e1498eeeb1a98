from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.workload.gguf_metadata import read_gguf

_TOML = """
architecture = "hunyuan-dense"
wanted = ["attn_q.bias"]

[metadata]
vocab_size = 384
context_length = 512
embedding_length = 256
block_count = 2
feed_forward_length = 512
"attention.head_count" = 4
"attention.head_count_kv" = 2
"attention.layer_norm_rms_epsilon" = 1e-5
"""

_CONFIG = {
    "architectures": ["SmolLM3ForCausalLM"],
    "vocab_size": 384,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000,
    "tie_word_embeddings": True,
}


def _written(tmp_path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> Path:
    path = tmp_path / "made.gguf"
    assert main(["synthesize", *words, "-o", str(path)]) == 0
    assert capsys.readouterr().out.startswith(f"{path}: ")
    return path


def test_a_tiny_model_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The smallest model of an architecture is made by its name, at another depth if that is asked for."""
    path = _written(tmp_path, capsys, "tiny-gemma3", "--layers=1")
    found = read_gguf(path)
    assert (found.gguf_architecture, found.shape.n_layers, found.known_architecture) == ("gemma3", 1, None)


def test_a_short_file_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a TOML file with metadata alone, the engine says which tensors the model has, and the file which others."""
    (tmp_path / "own.toml").write_text(_TOML)
    names = {each.name for each in read_gguf(_written(tmp_path, capsys, str(tmp_path / "own.toml"))).shape.tensors}
    assert {"blk.1.attn_q_norm.weight", "blk.1.attn_q.bias"} <= names
    assert not {"blk.1.attn_k.bias", "output.weight"} & names


def test_a_config_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A config.json of a class that the suite does not know itself is made into a file of its architecture."""
    (tmp_path / "config.json").write_text(json.dumps(_CONFIG))
    found = read_gguf(_written(tmp_path, capsys, str(tmp_path / "config.json"), "--quant=q4_0"))
    assert (found.gguf_architecture, found.shape.n_layers) == ("smollm3", 4)
    assert found.tensor_types["blk.0.ffn_up.weight"] == "Q4_0"
