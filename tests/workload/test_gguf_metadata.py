from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest

from perfsuite.errors import GgufError
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.families import FAMILIES
from perfsuite.workload.gguf_metadata import read_gguf
from perfsuite.workload.hyperparameters import hyperparameters
from perfsuite.workload.quantization import tensor_types
from perfsuite.workload.synthetic import write_synthetic
from perfsuite.workload.tensors import TensorSpec, tensor_specs

from ..unknown_weights import UNKNOWN, write_unknown


@pytest.mark.parametrize("gguf_architecture", FAMILIES)
def test_what_is_written_is_read(tiny: Callable[..., Architecture], tmp_path: Path, gguf_architecture: str) -> None:
    path = tmp_path / "tiny.gguf"
    architecture = tiny(gguf_architecture)
    write_synthetic(architecture, "q4_k_m", path)
    found = read_gguf(path)
    assert found.architecture == architecture
    assert found.tensor_types == tensor_types(architecture, "q4_k_m")
    assert (found.path, found.size_bytes) == (path, path.stat().st_size)


@pytest.mark.parametrize("absorbed", [True, False])
def test_both_layouts_of_latent_attention_are_read(
    tiny: Callable[..., Architecture], tmp_path: Path, absorbed: bool
) -> None:
    """DeepSeek-V2 files are told apart by their tensors: absorbed, or of the older layout; ranks are kept."""
    architecture = tiny("deepseek2")
    assert architecture.mla is not None
    latent = replace(architecture.mla, q_lora_rank=64, absorbed=absorbed)
    architecture = tiny("deepseek2", mla=latent, n_kv_heads=1 if absorbed else 4)
    path = tmp_path / "tiny.gguf"
    write_synthetic(architecture, "q8_0", path)
    assert read_gguf(path).architecture == architecture


def _written(writer: gguf.GGUFWriter, *tensors: TensorSpec) -> None:
    for each in tensors:
        writer.add_tensor(each.name, np.zeros(each.ne[::-1], dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _write(path: Path, architecture: str, values: dict[str, int | str]) -> Path:
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in values.items():
        getattr(writer, "add_uint32" if isinstance(value, int) else "add_string")(key, value)
    _written(writer, TensorSpec(name="token_embd.weight", ne=(256, 384)))
    return path


_LLAMA: dict[str, int | str] = {
    "llama.embedding_length": 256,
    "llama.attention.head_count": 4,
    "llama.block_count": 1,
    "llama.feed_forward_length": 512,
    "llama.context_length": 512,
}


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("llama", {}, "metadata lacks llama.embedding_length"),
        ("llama", {"llama.embedding_length": "256"}, "llama.embedding_length is '256', expected an integer"),
        ("llama", _LLAMA, "metadata lacks llama.attention.layer_norm_rms_epsilon"),
        ("llama", _LLAMA | {"llama.block_count": 1_000_000}, "llama.block_count is 1000000, expected 1 to 512"),
        ("odd", {"odd.block_count": 2**32 - 1}, "odd.block_count is 4294967295, expected 1 to 512"),
        (
            "llama",
            _LLAMA | {"llama.context_length": 2**32 - 1},
            "llama.context_length is 4294967295, expected at most",
        ),
        ("llama", {"split.count": 3}, "is split in 3 parts; merge them with llama-gguf-split --merge"),
    ],
)
def test_unusable_metadata_is_refused(tmp_path: Path, name: str, values: dict[str, int | str], message: str) -> None:
    path = _write(tmp_path / "odd.gguf", name, values)
    with pytest.raises(GgufError) as caught:
        read_gguf(path)
    assert str(caught.value).startswith(f"{path}: {message}")


@pytest.mark.parametrize("known", [True, False])
def test_tensors_without_a_place_are_named(tiny: Callable[..., Architecture], tmp_path: Path, known: bool) -> None:
    """A file that holds a projector beside a text model is refused with its tensors, as llama.cpp would refuse it."""
    path, name = tmp_path / "both.gguf", "llama" if known else UNKNOWN
    writer = gguf.GGUFWriter(path, name)
    for key, value in hyperparameters(tiny()).items():
        getattr(writer, "add_float32" if isinstance(value, float) else "add_uint32")(f"{name}.{key}", value)
    others = (TensorSpec(name=f"{part}.1.weight", ne=(8,)) for part in ("v", "a", "mm"))
    _written(writer, *tensor_specs(tiny()), *others)
    told = rf"3 of its \d+ tensors have no place in {name} \(v.1.weight, a.1.weight, mm.1.weight\)"
    with pytest.raises(GgufError, match=told):
        read_gguf(path)


@pytest.mark.parametrize(
    ("name", "beside", "told"),
    [
        ("m-00001-of-00002.gguf", "", "it is part 1 of 2, and m-00002-of-00002.gguf is missing there"),
        (
            "m-00002-of-00002.gguf",
            "m-00001-of-00002.gguf",
            "part 2 of 2; join them with 'llama-gguf-split --merge m-00001-of-00002.gguf m.gguf'",
        ),
        ("m.gguf.part1of2", "m.gguf.part2of2", "join them with 'cat m.gguf.part1of2 m.gguf.part2of2 > m.gguf'"),
    ],
)
def test_the_other_parts_of_a_file_are_looked_for(tmp_path: Path, name: str, beside: str, told: str) -> None:
    """A part says which others are missing, or how they become one file."""
    path = _write(tmp_path / name, "llama", {} if "part" in name else {"split.count": 2})
    if "part" in name:
        path.write_bytes(path.read_bytes()[:5000])
    if beside:
        (tmp_path / beside).touch()
    with pytest.raises(GgufError) as caught:
        read_gguf(path)
    assert told in str(caught.value)


def test_an_architecture_that_is_not_known_is_not_described(tmp_path: Path) -> None:
    """The file is read for its name and types; who asks for the architecture is refused in one line with the path."""
    path = write_unknown(tmp_path / "odd.gguf")
    found = read_gguf(path)
    assert (found.gguf_architecture, found.known_architecture) == (UNKNOWN, None)
    assert found.tensor_types == {"token_embd.weight": "F32"}
    with pytest.raises(GgufError) as caught:
        _ = found.architecture
    assert str(caught.value).startswith(f"{path}: architecture '{UNKNOWN}' is not supported; supported are llama, ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"blk.3.ffn_up.weight", b"blk.3.ffn_xx.weight", "lacks tensor 'blk.3.ffn_up.weight', which its metadata dem"),
        (
            *(b"llama.feed_forward_length\x04\0\0\0\0\x02", b"llama.feed_forward_length\x04\0\0\0\0\x01"),
            "is (256, 512), its metadata demands (256, 256)",
        ),
        (
            *(b"llama.block_count\x04\0\0\0\x09", b"llama.block_count\x04\0\0\0\x08"),
            "has tensor 'blk.8.attn_norm.weight', its metadata says 8 layers",
        ),
        (
            *(b"llama.attention.head_count_kv\x04\0\0\0\x02", b"llama.attention.head_count_kv\x04\0\0\0\x03"),
            "n_kv_heads is 3, expected a divisor of n_heads",
        ),
    ],
    ids=["name", "width", "depth", "heads"],
)
def test_tensors_must_match_the_metadata(
    tiny: Callable[..., Architecture], tmp_path: Path, old: bytes, new: bytes, message: str
) -> None:
    path = tmp_path / "tiny.gguf"
    write_synthetic(tiny(), "f16", path)
    path.write_bytes(path.read_bytes().replace(old, new))
    with pytest.raises(GgufError, match=re.escape(message)):
        read_gguf(path)
