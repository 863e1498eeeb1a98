"""What a forecast is about: an architecture of the catalogue, of a ``config.json`` or of a GGUF file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perfsuite.errors import ArchitectureError, PerfsuiteError
from perfsuite.expectation.paper.passes import DEFAULT_LORA_RANK
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import find_model, names
from perfsuite.workload.config_metadata import is_config, spec_of_config
from perfsuite.workload.model_shape import ModelShape, check_generates
from perfsuite.workload.model_spec import ModelSpec
from perfsuite.workload.quantization import quantizations
from perfsuite.workload.variant import Variant
from perfsuite.workload.weights import Weights, is_path, refuse_two_meanings, resolve

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

    @property
    def name(self) -> str:
        """The architecture's."""
        return self.architecture.name


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSubject:
    """A model whose graph only the engine knows."""

    name: str
    #: A specification has no tensors yet, and a shape no types of them.
    model: Weights | ModelShape | ModelSpec


def find_subject(text: str) -> Subject:
    """Find an architecture whose graph the suite writes itself; see `find_any_subject`."""
    found = find_any_subject(text)
    if isinstance(found, EngineSubject):
        raise ArchitectureError(f"{text}: only the engine knows its graph; expected one of {', '.join(names())}")
    return found


def find_any_subject(text: str) -> Subject | EngineSubject:
    """Find a model by what a user gave.

    Accepted are a name of the catalogue, with a quantisation behind it or without (``smollm2-135m``,
    ``smollm2-135m-q8_0``), the path of a ``config.json`` and the path of a GGUF file. Anything else, and a file that
    cannot be used, is a PerfsuiteError.
    """
    path = Path(text)
    if is_config(path):
        model = spec_of_config(path)
        name = path.resolve().parent.name
        return EngineSubject(name=name, model=model) if isinstance(model, ModelSpec) else Subject(architecture=model)
    is_file = is_path(text) and (path.suffix == ".gguf" or path.is_file())
    if not is_file and ("/" in text or "\\" in text):
        raise PerfsuiteError(f"--architecture={text}: expected a name, a path of a config.json, or one of a .gguf file")
    if is_file or (text not in names() and text.rpartition("-")[2] in quantizations()):
        refuse_two_meanings(text)
        return _of_weights(resolve(text, cache_dir=Path()), text)
    found = find_model(text)
    if isinstance(found, ModelShape):
        check_generates(found, f"--architecture={text}")
        return EngineSubject(name=found.name, model=found)
    return Subject(architecture=found)


def _of_weights(weights: Weights, text: str) -> Subject | EngineSubject:
    check_generates(weights.shape, f"--architecture={text}")
    if weights.known_architecture is None:
        return EngineSubject(name=weights.name, model=weights)
    return Subject(architecture=weights.known_architecture, tensor_types=weights.tensor_types)
