"""What a forecast is about: an architecture of the catalogue, of a ``config.json`` or of a GGUF file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perfsuite.errors import ArchitectureError, PerfsuiteError
from perfsuite.expectation.paper.template import DEFAULT_LORA_RANK
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import find, names
from perfsuite.workload.gguf_metadata import read_gguf
from perfsuite.workload.huggingface import from_config
from perfsuite.workload.model_shape import check_generates
from perfsuite.workload.quantization import quantizations
from perfsuite.workload.variant import Variant
from perfsuite.workload.weights import resolve

#: The largest counts that mean anything; their products stay within 64 bits.
_MOST = {"--lora-rank": 1 << 16, "--chunk": 1 << 20, "--batch": 1 << 12, "--tile": 1 << 16}


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimisations:
    """A variant and what is changed of it; a value that means nothing is a PerfsuiteError by its option's name."""

    #: None where a file's own tensor types, or `quantization`, say what the weights are.
    variant: Variant | None = None
    #: Weight quantisation in the variant's place, such as ``q4_k_m``.
    quantization: str | None = None
    #: Type of the KV cache in the variant's place.
    kv_type: str | None = None
    #: Rank of adapters on every matrix of a layer; None for the variant's.
    lora_rank: int | None = None
    #: Whether the adapters were added to the weights once before, and so cost nothing in a pass.
    lora_merged: bool = False
    #: Tokens of a prompt that are evaluated at once; None for what the conventions have.
    chunk: int | None = None
    #: Sequences that are generated side by side.
    n_sequences: int = 1
    #: What the prompt and the visible context are padded to a multiple of.
    tile: int = 1

    def __post_init__(self) -> None:
        """Refuse counts below 1 and beyond all use, and merging without adapters."""
        counts = {
            "--lora-rank": self.lora_rank,
            "--chunk": self.chunk,
            "--batch": self.n_sequences,
            "--tile": self.tile,
        }
        for option, value in counts.items():
            if value is not None and not 1 <= value <= _MOST[option]:
                raise PerfsuiteError(f"{option}={value}: expected an integer from 1 to {_MOST[option]}")
        if self.lora_merged and self.adapter_rank is None:
            raise PerfsuiteError("--lora-merged: there is no adapter to merge; give --lora-rank or a variant with LoRA")

    @property
    def adapter_rank(self) -> int | None:
        """Rank of the adapters, merged or not; None without any."""
        if self.lora_rank is None and self.variant is not None and self.variant.lora:
            return DEFAULT_LORA_RANK
        return self.lora_rank

    @property
    def inline_rank(self) -> int | None:
        """Rank of the adapters that run in every pass."""
        return None if self.lora_merged else self.adapter_rank


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
        check_generates(gguf.shape, f"--architecture={text}")
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
