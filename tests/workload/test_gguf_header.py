from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from perfsuite.errors import GgufError
from perfsuite.workload.gguf_header import read_header


def _string(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def _file(path: Path, *, keys: bytes = b"", n_keys: int = 0, tensors: bytes = b"", n_tensors: int = 0) -> Path:
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, n_tensors, n_keys) + keys + tensors)
    return path


def _written(writer: gguf.GGUFWriter, **tensors: np.ndarray) -> None:
    for name, values in tensors.items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _tensor(n_dimensions: int = 1, ne: int = 32, kind: int = 0) -> bytes:
    extents = struct.pack(f"<{n_dimensions}Q", *([ne] * n_dimensions))
    return _string("t") + struct.pack("<I", n_dimensions) + extents + struct.pack("<IQ", kind, 0)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A file by the gguf package with a value of each kind."""
    writer = gguf.GGUFWriter(tmp_path / "all.gguf", "llama")
    writer.add_uint8("k.u8", 1)
    writer.add_int16("k.i16", -2)
    writer.add_uint64("k.u64", 2**40)
    writer.add_float32("k.f32", 0.5)
    writer.add_float64("k.f64", 0.1)
    writer.add_bool("k.bool", True)
    writer.add_string("k.string", "été")
    writer.add_array("k.strings", ["a", "bc", ""])
    writer.add_array("k.integers", [1, 2, 3])
    _written(writer, first=np.zeros((3, 32), dtype=np.float32), second=np.zeros(5, dtype=np.float16))
    return tmp_path / "all.gguf"


def test_values_of_each_kind_are_read(written: Path) -> None:
    header = read_header(written)
    values = {key: value for key, value in header.metadata.items() if key.startswith("k.")}
    assert values == {
        "k.u8": 1,
        "k.i16": -2,
        "k.u64": 2**40,
        "k.f32": 0.5,
        "k.f64": 0.1,
        "k.bool": True,
        "k.string": "été",
        "k.strings": None,
        "k.integers": None,
    }
    assert header.size_bytes == written.stat().st_size


def test_tensors_have_ggmls_order(written: Path) -> None:
    """Extents come with the contiguous one first, offsets aligned."""
    first, second = read_header(written).tensors
    assert (first.spec.ne, first.ggml_type.name, first.size_bytes, first.offset_bytes) == ((32, 3), "F32", 384, 0)
    assert (second.spec.ne, second.ggml_type.name, second.size_bytes, second.offset_bytes) == ((5,), "F16", 10, 384)


def test_truncation_anywhere_is_noticed(written: Path) -> None:
    """A file cut at any byte of its header or data is refused as truncated or as no GGUF."""
    whole = written.read_bytes()
    needed = len(whole) - len(whole) % 32 if len(whole) % 32 > 10 else len(whole) - 22
    for length in {*range(0, needed, 7), needed - 1}:
        written.write_bytes(whole[:length])
        with pytest.raises(GgufError, match=r"is truncated|is not a GGUF file"):
            read_header(written)


@pytest.mark.parametrize(
    ("version", "message"), [(struct.pack("<I", 1), "is GGUF version 1,"), (struct.pack(">I", 3), "is big-endian GGUF")]
)
def test_other_versions_are_refused(tmp_path: Path, version: bytes, message: str) -> None:
    """Version 1 and files of the other byte order are refused with the way out."""
    path = tmp_path / "old.gguf"
    path.write_bytes(b"GGUF" + version + bytes(16))
    with pytest.raises(GgufError, match=message):
        read_header(path)


#: Two tensors of 128 bytes, of which the second begins within the first.
_OVERLAPPING = b"".join(_string(name) + struct.pack("<IQIQ", 1, 32, 0, at) for name, at in (("a", 0), ("b", 64)))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"tensors": _tensor(n_dimensions=9)}, "tensor 't' has 9 dimensions, expected 1 to 4"),
        ({"tensors": _tensor(kind=99)}, "tensor 't' has ggml type 99"),
        ({"tensors": _tensor(ne=33, kind=2)}, "rows of 33 values, expected a multiple of Q4_0's block of 32"),
        ({"tensors": 2 * _tensor(), "n_tensors": 2}, "it has tensor 't' twice"),
        ({"tensors": _OVERLAPPING, "n_tensors": 2}, "tensor 'a' ends at byte 128 of the data, 'b' begins at 64"),
        ({"keys": _string("k") + struct.pack("<I", 77)}, "metadata of unknown kind 77"),
        ({"keys": _string("k") + struct.pack("<IIQ", 9, 4, 2**62)}, "its header goes on after"),
        ({"keys": 2 * (_string("k") + struct.pack("<IB", 7, 1)), "n_keys": 2}, "its metadata has 'k' twice"),
        (
            {"keys": _string("general.alignment") + struct.pack("<II", 4, 0)},
            "general.alignment is 0, expected a positive power of 2",
        ),
    ],
)
def test_what_is_damaged_is_refused_at_once(tmp_path: Path, damage: dict[str, Any], message: str) -> None:
    counts = {"n_keys": 1 if "keys" in damage else 0, "n_tensors": 1 if "tensors" in damage else 0}
    with pytest.raises(GgufError, match=message):
        read_header(_file(tmp_path / "damaged.gguf", **{**counts, **damage}))
