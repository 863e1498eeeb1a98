"""Synthetic GGUF files: the true shapes and types of a model, with made-up weights.

llama.cpp loads and decodes them. How long it takes does not depend on the weights' values, except where a router
chooses experts; so each matrix repeats a few distinct rows, and routers are random throughout. A change here that
writes other bytes for the same request must raise ``FORMAT_VERSION`` in ``weights.py``.

Rows of random weights in any ggml type.

Types that the ``gguf`` package can quantise are quantised from uniform values. The rest get random bits, which each
of these formats decodes to something, under scales that give the values the wanted spread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count, islice, product
from pathlib import Path
from typing import IO, cast
from zlib import crc32

import numpy as np
from gguf import GGMLQuantizationType, GGUFValueType, GGUFWriter, TokenType
from gguf.quants import quantize
from numpy.typing import NDArray

from perfsuite.errors import GgufError, QuantizationError
from perfsuite.records.whole_file import whole_path
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.ggml_types import GGML_TYPES, GgmlType
from perfsuite.workload.model_shape import MetadataValue, ModelShape, full_key, shape_of
from perfsuite.workload.quantization import tensor_types
from perfsuite.workload.tensors import TensorSpec

Bytes = NDArray[np.uint8]

_QUANTIZED_BY_GGUF = frozenset(
    ("F32", "F16", "BF16", "Q8_0", "Q5_0", "Q5_1", "Q4_0", "Q4_1", "TQ1_0", "TQ2_0", "MXFP4")
)


def random_rows(
    ggml_type: GgmlType, n_rows: int, n_values: int, *, deviation: float, random: np.random.Generator
) -> Bytes:
    """Return rows of random weights as bytes, shape (n_rows, bytes of a row).

    ``deviation`` is the standard deviation of the values, centred on 0; types with coarse scales come within a
    third of it.
    """
    if ggml_type.name in _QUANTIZED_BY_GGUF:
        half_width = deviation * 3.0**0.5
        values = (random.random((n_rows, n_values), dtype=np.float32) * 2 - 1) * np.float32(half_width)
        return as_bytes(values, ggml_type)
    if ggml_type.name not in _LAYOUTS:
        raise QuantizationError(f"weights of ggml type {ggml_type.name} cannot be made up")
    unit_deviation, set_scale = _LAYOUTS[ggml_type.name]
    n_bytes = ggml_type.row_bytes(n_values)
    bits: Bytes = np.frombuffer(random.bytes(n_rows * n_bytes), dtype=np.uint8).copy()
    set_scale(bits.reshape(-1, ggml_type.block_bytes), deviation / unit_deviation)
    return bits.reshape(n_rows, n_bytes)


def as_bytes(values: NDArray[np.float32], ggml_type: GgmlType) -> Bytes:
    """Quantise rows of values to a type that the ``gguf`` package can quantise."""
    rows = quantize(values, GGMLQuantizationType[ggml_type.name])
    as_uint8: Bytes = np.ascontiguousarray(rows).view(np.uint8).reshape(len(values), -1)
    return as_uint8


def _half_at(offset: int) -> Callable[[Bytes, float], None]:

    def set_scale(blocks: Bytes, scale: float) -> None:
        blocks[:, offset : offset + 2] = np.array([scale], dtype="<f2").view(np.uint8)

    return set_scale


def _half_pair_at(offset: int, minimum_ratio: float) -> Callable[[Bytes, float], None]:
    """Keep the scale, and behind it that of the minimum, whose ratio to the scale centres the values."""

    def set_scale(blocks: Bytes, scale: float) -> None:
        pair = np.array([scale, scale * minimum_ratio], dtype="<f2")
        blocks[:, offset : offset + 4] = pair.view(np.uint8)

    return set_scale


def _half_in_nibbles(blocks: Bytes, scale: float) -> None:
    """Spread a half over the high nibbles of the four 16-bit words at byte 48 (IQ1_M)."""
    half = int(np.array(scale, dtype="<f2").view("<u2"))
    for word in range(4):
        high_byte = blocks[:, 48 + 2 * word + 1]
        high_byte[:] = (high_byte & 0x0F) | (half >> 4 * word & 0x0F) << 4


def _small_floats(blocks: Bytes, scale: float) -> None:
    """Keep four scales as unsigned 8-bit floats (NVFP4), of which the first 15 are multiples of 2**-9."""
    blocks[:, :4] = min(max(round(scale * 2**9), 1), 15)


# How to scale a block of random bits: its values' standard deviation at scale 1, and what puts a scale into it.
# The deviations follow from the formats' definitions in ggml/src/ggml-common.h of llama.cpp.
_LAYOUTS: Mapping[str, tuple[float, Callable[[Bytes, float], None]]] = {
    "Q2_K": (13.9, _half_pair_at(80, 1.5)),
    "Q3_K": (43.4, _half_at(108)),
    "Q4_K": (257.0, _half_pair_at(0, 7.5)),
    "Q5_K": (529.0, _half_pair_at(0, 15.5)),
    "Q6_K": (1368.0, _half_at(208)),
    "Q1_0": (1.0, _half_at(0)),
    "Q2_0": (1.2, _half_at(0)),
    "IQ4_NL": (67.2, _half_at(0)),
    "IQ4_XS": (1243.0, _half_at(0)),
    "IQ3_S": (141.0, _half_at(0)),
    "IQ3_XXS": (142.0, _half_at(0)),
    "IQ2_S": (56.3, _half_at(0)),
    "IQ2_XS": (56.0, _half_at(0)),
    "IQ2_XXS": (53.5, _half_at(0)),
    "IQ1_M": (7.2, _half_in_nibbles),
    "IQ1_S": (7.19, _half_at(0)),
    "NVFP4": (2.93, _small_floats),
}


_ALIGNMENT = 32
_CHUNK_BYTES = 4 << 20
_N_DISTINCT_ROWS = 32
# Logits with only a few distinct values would distort what a sampler has to sort.
_N_DISTINCT_TOKENS = 1024
# Arrays that the engine reads as 64-bit integers. Source: src/models/qwen4exp.cpp of llama.cpp.
_WIDE_KEYS = ("ple.layer_multipliers", "ple.head_offsets", "ple.head_vocab_sizes")
_DECAY = ".ssm_a"
_TOKEN_TABLES = ("token_embd.weight", "output.weight")


def write_synthetic(model: Architecture | ModelShape, quantization: str, path: Path, *, seed: int = 0) -> None:
    """Write a synthetic GGUF of a model; equal arguments give equal bytes.

    The file appears under its name only once it is complete. Raises QuantizationError for an unknown quantisation
    and GgufError where the file cannot be written.
    """
    shape = shape_of(model)
    types = tensor_types(shape, quantization)
    with whole_path(path, GgufError) as partial:
        _write_header(shape, types, partial, n_tokens=shape.n_vocab)
        with partial.open("ab") as file:
            for spec in shape.tensors:
                _write_tensor(file, spec, GGML_TYPES[types[spec.name]], seed)


def write_outline(shape: ModelShape, types: Mapping[str, str], path: Path) -> None:
    """Write a GGUF whose weights are a hole, which a file system keeps no blocks of: an engine can say its graph."""
    _write_header(shape, types, path, n_tokens=shape.n_vocab)
    sizes = (each.n_rows * GGML_TYPES[types[each.name]].row_bytes(each.ne[0]) for each in shape.tensors)
    n_bytes = path.stat().st_size + sum(size + -size % _ALIGNMENT for size in sizes)
    os.truncate(path, n_bytes + -n_bytes % _ALIGNMENT)


def write_metadata(shape: ModelShape, path: Path) -> None:
    """Write a GGUF of a model's metadata alone, with neither tensors nor the words of a vocabulary."""
    _write_header(replace(shape, tensors=()), {}, path, n_tokens=0)


def _write_header(shape: ModelShape, types: Mapping[str, str], path: Path, *, n_tokens: int) -> None:
    writer = GGUFWriter(path, shape.gguf_architecture)
    writer.add_name(shape.name)
    writer.add_quantization_version(2)
    _add_vocabulary(writer, n_tokens)
    for key, value in shape.metadata:
        _add_value(writer, full_key(shape, key), value)
    for spec in shape.tensors:
        ggml_type = GGML_TYPES[types[spec.name]]
        n_bytes = spec.n_rows * ggml_type.row_bytes(spec.ne[0])
        # An older gguf package lacks the newest types; the file needs no more than their number.
        number = cast(GGMLQuantizationType, ggml_type.number)
        writer.add_tensor_info(spec.name, spec.ne[::-1], np.dtype(np.float32), n_bytes, number)
    try:
        writer.write_header_to_file(path)
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
    finally:
        writer.close()


#: Tokens that the vocabulary begins with: unknown, begin and end, and one that llama.cpp looks for in every model with
#: 'phi3' in its name. A token for each byte follows.
_SPECIAL_TOKENS = ("<unk>", "<s>", "</s>", "<|endoftext|>")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SPACE = "\u2581"
#: Fewer tokens than these are no vocabulary: the special ones, the bytes, the letters, and the shortest words.
_LEAST_TOKENS = len(_SPECIAL_TOKENS) + 256 + 1 + 2 * len(_LETTERS)


def vocabulary(n_vocab: int) -> Iterator[tuple[str, TokenType]]:
    """Yield the tokens of a made-up vocabulary, the likelier ones first: words of letters, shorter ones before longer.

    With each word its beginnings are there, too, which is how SentencePiece finds it letter by letter.
    """
    yield _SPECIAL_TOKENS[0], TokenType.UNKNOWN
    yield from ((token, TokenType.CONTROL) for token in _SPECIAL_TOKENS[1:])
    yield from ((f"<0x{byte:02X}>", TokenType.BYTE) for byte in range(256))
    yield from ((token, TokenType.NORMAL) for token in (_SPACE, *_LETTERS))
    n_left = n_vocab - len(_SPECIAL_TOKENS) - 256 - 1 - len(_LETTERS)
    words = (_SPACE + "".join(each) for length in count(1) for each in product(_LETTERS, repeat=length))
    yield from ((word, TokenType.NORMAL) for word in islice(words, n_left))


def _add_vocabulary(writer: GGUFWriter, n_vocab: int) -> None:
    """Add a vocabulary that llama.cpp loads, tokenises by and detokenises by."""
    if n_vocab < _LEAST_TOKENS:
        writer.add_tokenizer_model("no_vocab")
        return
    tokens, types = zip(*vocabulary(n_vocab), strict=True)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores([-float(at) for at in range(n_vocab)])
    writer.add_token_types(types)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(True)


def _add_value(writer: GGUFWriter, key: str, value: MetadataValue) -> None:
    if isinstance(value, tuple):
        kind = GGUFValueType.UINT64 if key.endswith(_WIDE_KEYS) else None
        writer.add_key_value(key, list(value), GGUFValueType.ARRAY, sub_type=kind)
    elif isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_float32(key, value)


def _write_tensor(file: IO[bytes], spec: TensorSpec, ggml_type: GgmlType, seed: int) -> None:
    file.write(bytes(-file.tell() % _ALIGNMENT))
    distinct = _distinct_rows(spec, ggml_type, seed)
    repeats = max(1, min(_CHUNK_BYTES // max(distinct.nbytes, 1), spec.n_rows // len(distinct)))
    chunk = np.tile(distinct, (repeats, 1)).reshape(-1).data
    remaining = spec.n_rows * ggml_type.row_bytes(spec.ne[0])
    while remaining:
        remaining -= file.write(chunk[:remaining])


def _distinct_rows(spec: TensorSpec, ggml_type: GgmlType, seed: int) -> Bytes:
    random = np.random.default_rng((seed, crc32(spec.name.encode())))
    n_values = spec.ne[0]
    if len(spec.ne) == 1 or spec.name.endswith(_DECAY) or "norm" in spec.name:
        return as_bytes(_vector(spec, random), ggml_type)
    n_rows = min(spec.n_rows, _n_distinct(spec))
    # Inverse square root of the fan-in: activations neither vanish nor overflow half precision.
    return random_rows(ggml_type, n_rows, n_values, deviation=float(n_values) ** -0.5, random=random)


def _n_distinct(spec: TensorSpec) -> int:
    if "ffn_gate_inp." in spec.name:
        return spec.n_rows
    return _N_DISTINCT_TOKENS if spec.name in _TOKEN_TABLES else _N_DISTINCT_ROWS


def _vector(spec: TensorSpec, random: np.random.Generator) -> NDArray[np.float32]:
    noise = (random.random((1, spec.ne[0]), dtype=np.float32) - np.float32(0.5)) * np.float32(0.1)
    values: NDArray[np.float32] = noise + np.float32(_centre(spec.name))
    return values


def _centre(name: str) -> float:
    """Return what a vector's values lie around: states decay, by small steps; norms and scales change little."""
    if name.endswith(_DECAY):
        return -1.0
    if "ssm_dt.bias" in name:
        return -2.0
    if name.startswith("rope_") or name.endswith(("_scale.weight", "ssm_d")):
        return 1.0
    return 1.0 if name.endswith(".weight") and ("norm" in name or "_ln" in name) else 0.0
