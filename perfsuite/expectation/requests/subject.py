"""What a forecast is about: an architecture of the catalogue, of a ``config.json`` or of a GGUF file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perfsuite.errors import ArchitectureError, PerfsuiteError
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import find, names
from perfsuite.workload.gguf_metadata import read_gguf
from perfsuite.workload.huggingface import from_config
from perfsuite.workload.quantization import quantizations
from perfsuite.workload.weights import resolve


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An architecture, and the types of its tensors where something other than a variant says them."""

    architecture: Architecture
    #: Tensor name to upper-case ggml type; None where nothing is known of them.
    tensor_types: Mapping[str, str] | None = field(default=None, hash=False)


def find_subject(text: str) -> Subject:
    """Find an architecture by what a user gave.

    Accepted are a name of the catalogue, with a quantisation behind it or without (``smollm2-135m``,
    ``smollm2-135m-q8_0``), the path of a ``config.json`` and the path of a GGUF file. Anything else, and a file that
    cannot be used, is a PerfsuiteError.
    """
    path = Path(text)
    if path.suffix == ".json":
        return Subject(architecture=_from_config(path))
    if path.suffix == ".gguf":
        gguf = read_gguf(path)
        return Subject(architecture=gguf.architecture, tensor_types=gguf.tensor_types)
    if "/" in text or "\\" in text:
        raise PerfsuiteError(f"--architecture={text}: expected a name, a path of a config.json, or one of a .gguf file")
    if text not in names() and text.rpartition("-")[2] in quantizations():
        weights = resolve(text, cache_dir=Path())
        return Subject(architecture=weights.architecture, tensor_types=weights.tensor_types)
    return Subject(architecture=find(text))


def _from_config(path: Path) -> Architecture:
    """Read a config, whose heads must divide the width unless it gives their size."""
    architecture = from_config(path)
    n_embd, n_heads = architecture.n_embd, architecture.n_heads
    if architecture.mla is None and n_embd % n_heads and architecture.head_dim == n_embd // n_heads:
        raise ArchitectureError(
            f"{path}: num_attention_heads is {n_heads}, expected a divisor of hidden_size ({n_embd})"
        )
    return architecture
