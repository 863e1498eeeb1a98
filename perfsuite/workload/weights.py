"""Weights: what a run loads: a file that somebody has, or a synthetic one that the suite writes."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from perfsuite.errors import GgufError, QuantizationError
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import find_model, is_name
from perfsuite.workload.gguf_metadata import read_gguf, unknown_architecture
from perfsuite.workload.model_shape import ModelShape, shape_of
from perfsuite.workload.quantization import check_quantization, quantizations, tensor_types

#: Raised when the same request writes other bytes, so that a cached file is not taken for a new one.
FORMAT_VERSION = 3

_SUFFIX = ".gguf"
_SEED = 0
_SAMPLE_BYTES = 1 << 20
_DEPTH = re.compile(r"(?P<base>.+)-l(?P<n_layers>[1-9]\d{0,3})")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """An architecture with the type of each tensor, and the file that holds them where there is one."""

    #: Name in case ids, such as ``smollm2-135m-q8_0``.
    name: str
    #: The value of ``general.architecture``.
    gguf_architecture: str
    #: None of a family that the engine may know and the suite does not.
    known_architecture: Architecture | None
    #: What is known of any model: its depth, its width, its vocabulary's size, and the extents of its tensors.
    shape: ModelShape = field(hash=False, repr=False)
    #: Tensor name to upper-case ggml type name, read-only.
    tensor_types: Mapping[str, str] = field(hash=False)
    #: The quantisation as its name says; ``None`` for a given file, whose types may be any mixture.
    quantization: str | None
    #: The file; ``None`` for synthetic weights that are not written yet.
    path: Path | None
    #: ``synthetic:`` and 16 digits of a hash of everything that determines the bytes, or ``sha256:`` and the
    #: hash of the file's size, first MiB and last MiB: enough to tell files apart without reading gigabytes.
    identity: str

    @property
    def embeds(self) -> bool:
        """Whether it is a model of embeddings, which reads a prompt in one pass and generates nothing."""
        return self.shape.embeds

    @property
    def architecture(self) -> Architecture:
        """The architecture, for what needs to know it; a GgufError where it is of no family that is known."""
        if self.known_architecture is None:
            raise unknown_architecture(str(self.path or self.name), self.gguf_architecture)
        return self.known_architecture


def resolve(name_or_path: str, *, cache_dir: Path) -> Weights:
    """Find weights by a GGUF's path, or by a name ``<architecture>[-l<layers>]-<quantization>`` of the catalogue.

    What has a path separator, ends in ``.gguf`` or is a file is a path. Nothing is written. Raises ArchitectureError,
    QuantizationError or GgufError with what is accepted instead.
    """
    if not is_path(name_or_path):
        return _from_name(name_or_path, cache_dir)
    refuse_two_meanings(name_or_path)
    return _from_file(Path(name_or_path))


def is_path(name_or_path: str) -> bool:
    """Whether weights are named by the path of their file, of any suffix where it is there."""
    looks_so = name_or_path.endswith(_SUFFIX) or "/" in name_or_path or "\\" in name_or_path
    return looks_so or os.path.isfile(name_or_path)  # which, unlike Path's, also knows of names that are too long


def refuse_two_meanings(name: str) -> None:
    """Refuse a name of the catalogue, with a quantisation or without, that is a file of the working directory, too."""
    base, _, quantization = name.rpartition("-")
    if "/" not in name and _is_architecture(base if quantization in quantizations() else name) and os.path.isfile(name):
        raise GgufError(f"{name}: is a name of the catalogue and a file here; write ./{name} for the file")


def materialize(weights: Weights, *, cache_dir: Path) -> Path:
    """Return the file with these weights; synthetic ones are written into ``cache_dir`` the first time."""
    if weights.quantization is None:
        if weights.path is None or not weights.path.is_file():
            raise GgufError(f"{weights.path}: no such file")
        return weights.path
    path = _cached_path(weights.name, weights.identity, cache_dir)
    if not path.is_file():
        # Imported here because gguf is slow to import and most processes never write.
        from perfsuite.workload.synthetic import write_synthetic

        write_synthetic(weights.shape, weights.quantization, path, seed=_SEED)
    return path


def synthetic_weights(model: Architecture | ModelShape, quantization: str, *, cache_dir: Path) -> Weights:
    """Describe synthetic weights of any model; it need not be of the catalogue."""
    check_quantization(quantization)
    name = f"{model.name}-{quantization}"
    determining = f"{FORMAT_VERSION} {_SEED} {quantization} {model!r}"
    identity = f"synthetic:{sha256(determining.encode()).hexdigest()[:16]}"
    path = _cached_path(name, identity, cache_dir)
    return Weights(
        name=name,
        gguf_architecture=model.gguf_architecture,
        known_architecture=model if isinstance(model, Architecture) else None,
        shape=shape_of(model),
        tensor_types=tensor_types(model, quantization),
        quantization=quantization,
        path=path if path.is_file() else None,
        identity=identity,
    )


def _from_name(name: str, cache_dir: Path) -> Weights:
    base, _, quantization = name.rpartition("-")
    if quantization not in quantizations() and _is_architecture(name):
        accepted = ", ".join(quantizations())
        raise QuantizationError(f"{name!r} lacks a quantisation, as in {name}-q8_0; accepted are {accepted}")
    return synthetic_weights(_model(base or name), quantization, cache_dir=cache_dir)


def _is_architecture(name: str) -> bool:
    depth = _DEPTH.fullmatch(name)
    return is_name(name) or (depth is not None and is_name(depth["base"]))


def _model(name: str) -> Architecture | ModelShape:
    depth = _DEPTH.fullmatch(name)
    if depth is None or is_name(name):
        return find_model(name)
    return find_model(depth["base"]).with_layers(int(depth["n_layers"]))


def _cached_path(name: str, identity: str, cache_dir: Path) -> Path:
    return cache_dir / f"{_safe(name)}-{identity.rpartition(':')[2]}{_SUFFIX}"


def _safe(name: str) -> str:
    return _UNSAFE.sub("-", name).strip("-.") or "unnamed"


def _from_file(path: Path) -> Weights:
    gguf = read_gguf(path)
    return Weights(
        name=_safe(path.stem),
        gguf_architecture=gguf.gguf_architecture,
        known_architecture=gguf.known_architecture,
        shape=gguf.shape,
        tensor_types=gguf.tensor_types,
        quantization=None,
        path=path,
        identity=f"sha256:{_file_hash(path, gguf.size_bytes)}",
    )


def _file_hash(path: Path, size_bytes: int) -> str:
    digest = sha256(str(size_bytes).encode())
    try:
        with path.open("rb") as file:
            digest.update(file.read(_SAMPLE_BYTES))
            file.seek(max(size_bytes - _SAMPLE_BYTES, 0))
            digest.update(file.read(_SAMPLE_BYTES))
    except OSError as error:
        raise GgufError(f"{path}: cannot be read: {error.strerror or error}") from error
    return digest.hexdigest()
