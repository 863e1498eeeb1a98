from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType
from gguf.quants import dequantize

from perfsuite.errors import GgufError
from perfsuite.workload import synthetic
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import find, find_model, listed, names, tiny_names
from perfsuite.workload.families import FAMILIES
from perfsuite.workload.ggml_types import GGML_TYPES
from perfsuite.workload.gguf_header import read_header
from perfsuite.workload.quantization import quantizations
from perfsuite.workload.synthetic import random_rows, vocabulary, write_synthetic

# The gguf package cannot decode these two.
_UNDECODABLE = ("Q1_0", "Q2_0")


@pytest.mark.parametrize("name", [each.name for each in GGML_TYPES.values() if each.is_weight])
@pytest.mark.parametrize("n_values", [256, 4096])
def test_values_have_the_wanted_spread(name: str, n_values: int) -> None:
    deviation = n_values**-0.5
    random = np.random.default_rng(1)
    rows = random_rows(GGML_TYPES[name], 64, n_values, deviation=deviation, random=random)
    assert rows.shape == (64, GGML_TYPES[name].row_bytes(n_values))
    if name in _UNDECODABLE:
        return
    values = dequantize(rows, GGMLQuantizationType[name]).astype(np.float64)
    assert np.isfinite(values).all()
    assert abs(values.mean()) < 0.1 * deviation
    assert values.std() == pytest.approx(deviation, rel=0.35)


Decode = Callable[..., list[dict[str, Any]]]


def _assert_sound(found: dict[str, Any], architecture: Architecture) -> None:
    assert found["finite"]
    assert found["differ"]
    assert 0.2 < found["deviation"] < 5.0
    factors = architecture.n_rot // 2 * (2 if architecture.gguf_architecture == "phi3" else 1)
    assert found["n_parameters"] == architecture.n_parameters + (factors if architecture.rope_freq_factors else 0)


@pytest.mark.long
@pytest.mark.parametrize("name", names())
def test_every_architecture_decodes(decode: Decode, tmp_path: Path, name: str) -> None:
    """Each architecture of the catalogue, cut to two layers, loads in llama.cpp and gives finite logits."""
    architecture = find(name).with_layers(2)
    path = tmp_path / f"{name}.gguf"
    write_synthetic(architecture, "q4_0" if architecture.n_parameters < 1e9 else "q2_k", path)
    (found,) = decode(path, flash_attention=architecture.family.flash_attention)
    _assert_sound(found, architecture)


@pytest.mark.long_but_first
@pytest.mark.parametrize("quantization", ["q8_0", "f16", "q4_k_m", "q4_0"])
def test_the_reference_model_decodes_whole(decode: Decode, tmp_path: Path, quantization: str) -> None:
    path = tmp_path / "whole.gguf"
    write_synthetic(find("smollm2-135m"), quantization, path)
    (found,) = decode(path)
    _assert_sound(found, find("smollm2-135m"))


@pytest.mark.long
def test_every_quantization_decodes(decode: Decode, tiny: Callable[..., Architecture], tmp_path: Path) -> None:
    architecture = tiny()
    paths = [tmp_path / f"{quantization}.gguf" for quantization in quantizations()]
    for path in paths:
        write_synthetic(architecture, path.stem, path)
    for found in decode(*paths):
        _assert_sound(found, architecture)


@pytest.mark.long_but_first
@pytest.mark.parametrize("gguf_architecture", FAMILIES)
def test_every_family_decodes(
    decode: Decode, tiny: Callable[..., Architecture], tmp_path: Path, gguf_architecture: str
) -> None:
    architecture = tiny(gguf_architecture)
    path = tmp_path / "tiny.gguf"
    write_synthetic(architecture, "q4_k_m", path)
    (found,) = decode(path, flash_attention=architecture.family.flash_attention)
    _assert_sound(found, architecture)


#: Drafts, which decode only beside the model that they draft for, and those that first have to encode.
_UNDECODED = ("tiny-eagle3", "tiny-dflash", "tiny-t5", "tiny-t5encoder")


#: State spaces, experts, sparse attention and recurrent networks.
_USUAL = ("tiny-mamba2", "tiny-gpt-oss", "tiny-deepseek32", "tiny-rwkv7")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each, marks=() if each in _USUAL else pytest.mark.long)
        for each in tiny_names()
        if each not in _UNDECODED
    ],
)
def test_every_tiny_model_decodes(decode: Decode, tmp_path: Path, name: str) -> None:
    """The smallest model of each architecture loads in llama.cpp and gives finite logits."""
    path = tmp_path / f"{name}.gguf"
    write_synthetic(find_model(name), "q8_0", path)
    (found,) = decode(path, flash_attention=name != "tiny-plm")
    assert found["finite"]
    assert found["n_parameters"] >= listed(name).shape(name).n_parameters


def test_states_decay(tmp_path: Path) -> None:
    """A state space's decay is negative, its steps are small, and norms of two dimensions lie around 1."""
    path = tmp_path / "tiny.gguf"
    write_synthetic(find_model("tiny-mamba2"), "q8_0", path)
    tensors = {each.name: each.data for each in gguf.GGUFReader(path).tensors}
    assert tensors["blk.0.ssm_a"].max() < 0
    assert tensors["blk.0.ssm_dt.bias"].max() < -1
    assert abs(tensors["blk.0.ssm_norm.weight"].mean() - 1) < 0.1


def test_equal_requests_give_equal_bytes(tiny: Callable[..., Architecture], tmp_path: Path) -> None:
    """The last tensor is whole."""
    paths = [tmp_path / name for name in ("a.gguf", "b.gguf", "c.gguf")]
    for path, seed in zip(paths, (0, 0, 1), strict=True):
        write_synthetic(tiny(), "q4_k_m", path, seed=seed)
    first, second, other = (path.read_bytes() for path in paths)
    assert first == second
    assert first != other
    last = read_header(paths[0]).tensors[-1]
    assert np.isfinite(np.frombuffer(first[-last.size_bytes :], dtype=np.float32)).all()


def test_the_file_is_what_the_gguf_package_reads(tiny: Callable[..., Architecture], tmp_path: Path) -> None:
    """Another reader finds the tensors, and weights that repeat down a matrix but not across routers."""
    path = tmp_path / "tiny.gguf"
    write_synthetic(tiny("qwen2moe"), "f32", path)
    tensors = {tensor.name: tensor.data for tensor in gguf.GGUFReader(path).tensors}
    up = tensors["blk.0.ffn_up_shexp.weight"]
    assert up.shape == (512, 256)
    assert np.array_equal(up[:32], up[32:64])
    assert not np.array_equal(up[0], up[1])
    router = tensors["blk.0.ffn_gate_inp.weight"]
    assert len(np.unique(router, axis=0)) == len(router) == 6
    assert np.allclose(tensors["blk.0.attn_norm.weight"], 1.0, atol=0.06)


def test_a_full_disk_leaves_nothing(
    tiny: Callable[..., Architecture], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"old")

    def fill(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(synthetic, "_write_tensor", fill)
    with pytest.raises(GgufError, match=r"cannot be written \(No space left on device\)"):
        write_synthetic(tiny(), "q8_0", path)
    assert [each.name for each in tmp_path.iterdir()] == ["tiny.gguf"]
    assert path.read_bytes() == b"old"


def test_a_vocabulary_has_its_size_and_no_token_twice() -> None:
    """Special tokens come first, then bytes, then what SentencePiece builds words from."""
    tokens = [token for token, _ in vocabulary(49152)]
    assert len(tokens) == len(set(tokens)) == 49152
    assert tokens[:4] == ["<unk>", "<s>", "</s>", "<|endoftext|>"]
    assert tokens[4] == "<0x00>"


def test_the_shortest_words_are_the_likeliest(tmp_path: Path) -> None:
    """Each token has a score, and they fall from the first to the last."""
    path = tmp_path / "tiny.gguf"
    write_synthetic(replace(find("smollm2-135m").with_layers(1), n_vocab=400), "q8_0", path)
    reader = gguf.GGUFReader(path)
    scores = reader.fields["tokenizer.ggml.scores"]
    values = [float(scores.parts[at][0]) for at in scores.data]
    assert len(values) == 400
    assert values == sorted(values, reverse=True)
