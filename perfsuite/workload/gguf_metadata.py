"""Architectures and tensor types from GGUF files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from perfsuite.errors import ArchitectureError, GgufError
from perfsuite.workload.architecture import MOST_LAYERS, MOST_POSITIONS, Architecture
from perfsuite.workload.families import FAMILIES
from perfsuite.workload.gguf_header import GgufHeader, joining, read_header
from perfsuite.workload.hyperparameters import Metadata
from perfsuite.workload.model_shape import ModelShape, shape_of_file
from perfsuite.workload.tensors import tensor_specs

#: Tensors that a text model may have beside those that the suite computes with, and the parts of another model that a
#: file of several has. *Source*: ``llama_model_base::load_tensors`` and ``tools/mtmd/clip-impl.h`` of llama.cpp.
_OPTIONAL = re.compile(
    r"rope_(freqs|factors_long|factors_short)\.weight|output\.bias|blk\.\d+\.(exp_probs_b|nextn|attn_rot_embd)\..*"
)
_OF_ANOTHER = re.compile(r"(v|a|mm|mmproj|resampler)\..*")
_PROJECTOR = "clip"
_MOST_NAMED = 5
_LAYER = re.compile(r"blk\.(\d{1,9})\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufModel:
    """What a GGUF file holds, without its weights."""

    path: Path
    size_bytes: int
    #: The value of ``general.architecture``.
    gguf_architecture: str
    #: None where it is of no family that is known.
    known_architecture: Architecture | None
    shape: ModelShape
    #: Tensor name to upper-case ggml type name, read-only.
    tensor_types: Mapping[str, str]

    @property
    def architecture(self) -> Architecture:
        """The architecture; a GgufError where it is of no family that is known."""
        if self.known_architecture is None:
            raise unknown_architecture(str(self.path), self.gguf_architecture)
        return self.known_architecture


def unknown_architecture(where: str, name: str) -> GgufError:
    """Return the error of what needs to know an architecture that is of no family that is known."""
    return GgufError(
        f"{where}: architecture {name!r} is not supported; supported are {', '.join(FAMILIES)}; "
        "'pytest --device=host --model' measures any that the engine runs"
    )


def read_gguf(path: Path) -> GgufModel:
    """Describe a GGUF file; one that is missing, broken, split, or contradicts its architecture raises GgufError."""
    header = read_header(path)
    name = _architecture_name(path, header)
    _check_limits(path, header, name)
    if name != _PROJECTOR:
        _refuse(path, header, name, [each for each in _names(header) if _OF_ANOTHER.fullmatch(each)])
    return GgufModel(
        path=path,
        size_bytes=header.size_bytes,
        gguf_architecture=name,
        known_architecture=_architecture(path, header, name) if name in FAMILIES else None,
        shape=shape_of_file(path.stem, name, header.metadata, tuple(each.spec for each in header.tensors)),
        tensor_types=MappingProxyType({each.spec.name: each.ggml_type.name for each in header.tensors}),
    )


def _architecture(path: Path, header: GgufHeader, name: str) -> Architecture:
    def refusal(key: str, value: object, expected: str) -> GgufError:
        if value is None:
            return GgufError(f"{path}: metadata lacks {name}.{key}")
        return GgufError(f"{path}: {name}.{key} is {value!r}, expected {expected}")

    shapes = {each.spec.name: each.spec.ne for each in header.tensors}
    metadata = Metadata(
        name=path.stem,
        gguf_architecture=name,
        values={key.removeprefix(f"{name}."): value for key, value in header.metadata.items()},
        n_vocab=shapes.get("token_embd.weight", (0, 0))[-1],
        tensors={each.removeprefix("blk.0.") for each in shapes},
        refusal=refusal,
    )
    try:
        architecture = metadata.architecture()
    except ArchitectureError as error:
        raise GgufError(f"{path}: {error}") from error
    _check_tensors(path, header, architecture)
    return architecture


def _architecture_name(path: Path, header: GgufHeader) -> str:
    name = header.metadata.get("general.architecture")
    if not isinstance(name, str):
        raise GgufError(f"{path}: metadata lacks general.architecture")
    n_parts = header.metadata.get("split.count", 0)
    if isinstance(n_parts, int) and n_parts > 1:
        todo = joining(path, otherwise="merge them with llama-gguf-split --merge")
        raise GgufError(f"{path}: is split in {n_parts} parts; {todo}")
    return name


def _check_limits(path: Path, header: GgufHeader, name: str) -> None:
    """Refuse more layers or tokens than any engine runs, and tensors of layers that the metadata has not."""
    n_ctx = header.metadata.get(f"{name}.context_length")
    if isinstance(n_ctx, int) and n_ctx > MOST_POSITIONS:
        raise GgufError(f"{path}: {name}.context_length is {n_ctx}, expected at most {MOST_POSITIONS}")
    n_layers = header.metadata.get(f"{name}.block_count")
    if not isinstance(n_layers, int):
        return
    if not 1 <= n_layers <= MOST_LAYERS:
        raise GgufError(f"{path}: {name}.block_count is {n_layers}, expected 1 to {MOST_LAYERS}")
    for tensor in header.tensors:
        layer = _LAYER.match(tensor.spec.name)
        if layer and int(layer[1]) >= n_layers:
            raise GgufError(f"{path}: has tensor {tensor.spec.name!r}, its metadata says {n_layers} layers")


def _check_tensors(path: Path, header: GgufHeader, architecture: Architecture) -> None:
    found = {each.spec.name: each.spec for each in header.tensors}
    for expected in tensor_specs(architecture):
        seen = found.get(expected.name)
        if seen is None:
            raise GgufError(f"{path}: lacks tensor {expected.name!r}, which its metadata demands")
        if seen.ne != expected.ne:
            raise GgufError(f"{path}: tensor {expected.name!r} is {seen.ne}, its metadata demands {expected.ne}")

    known = {each.name.rpartition(".")[0] for each in tensor_specs(architecture)}
    others = (each for each in _names(header) if each.rpartition(".")[0] not in known)
    _refuse(path, header, architecture.gguf_architecture, [each for each in others if not _OPTIONAL.fullmatch(each)])


def _names(header: GgufHeader) -> list[str]:
    return [each.spec.name for each in header.tensors]


def _refuse(path: Path, header: GgufHeader, name: str, strangers: Sequence[str]) -> None:
    """Refuse tensors that an architecture has no place for, as llama.cpp does, which only counts them."""
    if strangers:
        listed = ", ".join(strangers[:_MOST_NAMED]) + (", ..." if len(strangers) > _MOST_NAMED else "")
        raise GgufError(
            f"{path}: {len(strangers)} of its {len(header.tensors)} tensors have no place in {name} ({listed}); "
            "convert it again, and a part that sees or hears into a file of its own"
        )
