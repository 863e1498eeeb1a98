"""Synthetic GGUF files: the true shapes and types of a model, with made-up weights.

llama.cpp loads and decodes them. How long it takes does not depend on the weights' values, except where a router
chooses experts; so each matrix repeats a few distinct rows, and routers are random throughout. A change here that
writes other bytes for the same request must raise ``FORMAT_VERSION`` in ``weights.py``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, cast
from zlib import crc32

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter
from numpy.typing import NDArray

from perfsuite.errors import GgufError
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.blocks import Bytes, as_bytes, random_rows
from perfsuite.workload.ggml_types import GGML_TYPES, GgmlType
from perfsuite.workload.hyperparameters import hyperparameters
from perfsuite.workload.quantization import tensor_types
from perfsuite.workload.tensors import TensorSpec, tensor_specs

_ALIGNMENT = 32
_CHUNK_BYTES = 4 << 20
_N_DISTINCT_ROWS = 32
# Logits with only a few distinct values would distort what a sampler has to sort.
_N_DISTINCT_TOKENS = 1024
_TOKEN_TABLES = ("token_embd.weight", "output.weight")


def write_synthetic(architecture: Architecture, quantization: str, path: Path, *, seed: int = 0) -> None:
    """Write a synthetic GGUF of the architecture; equal arguments give equal bytes.

    The file appears under its name only once it is complete. Raises QuantizationError for an unknown quantisation
    and GgufError where the file cannot be written.
    """
    types = tensor_types(architecture, quantization)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        _write_header(architecture, types, temporary)
        with temporary.open("ab") as file:
            for spec in tensor_specs(architecture):
                _write_tensor(file, spec, GGML_TYPES[types[spec.name]], seed)
        os.replace(temporary, path)
    except OSError as error:
        raise GgufError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def _write_header(architecture: Architecture, types: Mapping[str, str], path: Path) -> None:
    writer = GGUFWriter(path, architecture.gguf_architecture)
    writer.add_name(architecture.name)
    writer.add_quantization_version(2)
    writer.add_tokenizer_model("no_vocab")
    for key, value in hyperparameters(architecture).items():
        _add_value(writer, f"{architecture.gguf_architecture}.{key}", value)
    for spec in tensor_specs(architecture):
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


def _add_value(writer: GGUFWriter, key: str, value: bool | int | float) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
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
    if len(spec.ne) == 1:
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
    near_one = spec.name.endswith("norm.weight") or spec.name.startswith("rope_")
    values: NDArray[np.float32] = noise + np.float32(1.0 if near_one else 0.0)
    return values
