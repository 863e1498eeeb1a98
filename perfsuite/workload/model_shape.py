"""The shape of a model of any architecture: the metadata of its GGUF, and the names and extents of its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from perfsuite.errors import ArchitectureError
from perfsuite.records.codec import read_toml
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.hyperparameters import hyperparameters
from perfsuite.workload.tensors import TensorSpec, in_full, kind_of, layer_of, parameters_of, tensor_specs

MetadataValue: TypeAlias = bool | int | float | str | tuple[bool | int | float, ...]

#: What begins so is no key of an architecture's own, and stands in a file as it is.
_GENERAL = ("general.", "tokenizer.", "xielu.")


#: Architectures that read a text whole and generate none; any other gives embeddings where its file says how its rows
#: are pooled. *Source*: ``llama_model::create_memory`` and ``llama_model_has_decoder`` in ``src/llama-model.cpp`` of
#: llama-cpp-python 0.3.36.
_ENCODERS = frozenset(
    {
        *("bert", "nomic-bert", "nomic-bert-moe", "neo-bert", "modern-bert", "eurobert", "jina-bert-v2"),
        *("jina-bert-v3", "gemma-embedding", "llama-embed", "t5encoder", "wavtokenizer-dec"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """What a GGUF says of a model, except its weights and its vocabulary."""

    name: str
    #: The value of ``general.architecture``.
    gguf_architecture: str
    #: Keys without the prefix ``<gguf_architecture>.``, and their values.
    metadata: tuple[tuple[str, MetadataValue], ...]
    #: In the order of the file.
    tensors: tuple[TensorSpec, ...]

    @property
    def n_layers(self) -> int:
        return self.integer("block_count")

    @property
    def n_embd(self) -> int:
        return self.integer("embedding_length")

    @property
    def n_vocab(self) -> int:
        """The number of tokens; 0 of a model that has none."""
        rows = (each.ne[-1] for each in self.tensors if each.name == "token_embd.weight")
        return next(rows, 0) or self.integer("vocab_size", 0)

    @property
    def n_positions(self) -> int | None:
        """The places of a text that a table has a row for; None where places are computed."""
        return next((each.ne[-1] for each in self.tensors if each.name == "position_embd.weight"), None)

    @property
    def n_parameters(self) -> int:
        """The number of trained weights, tied embeddings counted once."""
        return parameters_of(self.tensors)

    @property
    def embeds(self) -> bool:
        """Whether it gives embeddings of a text, and generates none."""
        return self.gguf_architecture in _ENCODERS or self.integer("pooling_type", 0) > 0

    @property
    def tied_embeddings(self) -> bool:
        return all(each.name != "output.weight" for each in self.tensors)

    def with_layers(self, n_layers: int) -> ModelShape:
        """Return the same model at another depth, its name ending in ``-l<depth>``.

        A shallower one has the first of the layers; only one whose layers are all alike can become deeper. Raises
        ArchitectureError where the model is no row of independent layers.
        """
        _check_depth(self, n_layers)
        metadata = {key: _at_depth(key, value, self.n_layers, n_layers) for key, value in self.metadata}
        kept = (each for each in self.tensors if (layer_of(each.name) or 0) < n_layers)
        more = (_in_layer(each, layer) for layer in range(self.n_layers, n_layers) for each in _first_layer(self))
        return replace(
            self,
            name=f"{self.name}-l{n_layers}",
            metadata=tuple({**metadata, "block_count": n_layers}.items()),
            tensors=(*kept, *more),
        )

    def integer(self, key: str, default: int | None = None) -> int:
        """Return a whole number of the metadata, or raise ArchitectureError where there is none and no default."""
        value = dict(self.metadata).get(key, default)
        if not isinstance(value, int):
            raise ArchitectureError(f"{self.name}: {full_key(self, key)} is {value!r}, expected an integer")
        return value


def check_generates(shape: ModelShape, what: str) -> None:
    """Raise ArchitectureError where a model of embeddings is given to `what`, an option or a command of others."""
    if shape.embeds:
        raise ArchitectureError(f"{what}: {shape.name} gives embeddings and generates nothing; name a model that does")


def full_key(shape: ModelShape, key: str) -> str:
    """Return what a key of the metadata is called in the file."""
    return key if key.startswith(_GENERAL) else f"{shape.gguf_architecture}.{key}"


def shape_of(model: Architecture | ModelShape) -> ModelShape:
    """Return the shape of a model that is given by its architecture, or by its shape already."""
    return model if isinstance(model, ModelShape) else _shape_of(model)


@lru_cache(maxsize=64)
def _shape_of(architecture: Architecture) -> ModelShape:
    return ModelShape(
        name=architecture.name,
        gguf_architecture=architecture.gguf_architecture,
        metadata=tuple(hyperparameters(architecture).items()),
        tensors=tensor_specs(architecture),
    )


#: Arrays that are not one value a layer.
_OF_THE_MODEL = ("rope.dimension_sections", "ple.", "adapters.", "target_layers", "deepstack_mapping")

#: What ties layers to each other or to the number of them, and a kind of tensor that does.
_TYING = ("attention.shared_kv_layers", "nextn_predict_layers", "decoder_block_count", "num_loops")
_TIED_TENSOR = "per_layer_token_embd.weight"


def _check_depth(shape: ModelShape, n_layers: int) -> None:
    numbered = [each for each in shape.tensors if layer_of(each.name) is not None]
    is_row = all(each.name.startswith("blk.") for each in numbered) and not any(
        each.name == _TIED_TENSOR for each in shape.tensors
    )
    if not is_row or any(shape.integer(key, 0) for key in _TYING):
        raise ArchitectureError(f"{shape.name}: its layers depend on one another, so it has only its own depth")
    if n_layers < 1:
        raise ArchitectureError(f"{shape.name}: a depth of {n_layers} layers, expected 1 or more")
    if n_layers > shape.n_layers and not _is_regular(shape):
        raise ArchitectureError(
            f"{shape.name}: a depth of {n_layers} layers, but its {shape.n_layers} are not alike; "
            f"ask for {shape.n_layers} or fewer"
        )


def _is_regular(shape: ModelShape) -> bool:
    layers: dict[int | None, set[tuple[str, tuple[int, ...]]]] = {}
    for each in shape.tensors:
        layers.setdefault(layer_of(each.name), set()).add((kind_of(each.name), each.ne))
    layers.pop(None, None)
    arrays = [value for key, value in shape.metadata if isinstance(value, tuple) and not key.startswith(_OF_THE_MODEL)]
    return len(set(map(frozenset, layers.values()))) == 1 and all(len(set(array)) == 1 for array in arrays)


def _first_layer(shape: ModelShape) -> tuple[TensorSpec, ...]:
    return tuple(each for each in shape.tensors if layer_of(each.name) == 0)


def _in_layer(spec: TensorSpec, layer: int) -> TensorSpec:
    return replace(spec, name=kind_of(spec.name).replace("*", str(layer)))


def _at_depth(key: str, value: MetadataValue, n_before: int, n_layers: int) -> MetadataValue:
    if key == "leading_dense_block_count" and isinstance(value, int):
        return min(value, n_layers)
    if not isinstance(value, tuple) or len(value) != n_before or key.startswith(_OF_THE_MODEL):
        return value
    return tuple([*value, *[value[-1]] * (n_layers - n_before)][:n_layers])


def shape_of_file(
    name: str, gguf_architecture: str, metadata: Mapping[str, MetadataValue | None], tensors: tuple[TensorSpec, ...]
) -> ModelShape:
    """Return the shape that a file's header describes, of whose arrays nothing is known."""
    prefix = f"{gguf_architecture}."
    own = {key.removeprefix(prefix): value for key, value in metadata.items() if key.startswith(prefix)}
    return ModelShape(
        name=name,
        gguf_architecture=gguf_architecture,
        metadata=tuple((key, value) for key, value in own.items() if value is not None),
        tensors=tensors,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A model of any architecture as a short TOML file says it: metadata of its GGUF, and which tensors it has."""

    #: The value of ``general.architecture``.
    architecture: str
    #: Keys without the prefix ``<architecture>.``.
    metadata: Mapping[str, MetadataValue]
    #: Kinds of tensors that a file may lack and this model has, such as ``attn_q.bias``; and those that it lacks
    #: although the engine cannot build a graph without.
    wanted: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()
    #: As the engine listed them; `shortened`.
    tensors: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    #: Of the catalogue's: the address of the ``config.json``, the published number of trained weights if exact, and
    #: why that is not the number in the tensors, where it is not.
    source: str = ""
    published_parameters: int | None = None
    deviation: str = ""

    def shape(self, name: str) -> ModelShape:
        n_layers = self.metadata.get("block_count")
        if not isinstance(n_layers, int):
            raise ArchitectureError(f"{name}: block_count is {n_layers!r} in its metadata, expected a whole number")
        return ModelShape(
            name=name,
            gguf_architecture=self.architecture,
            metadata=tuple(self.metadata.items()),
            tensors=in_full(self.tensors, n_layers),
        )


def read_spec(path: Path) -> ModelSpec:
    """Read a model's file; raises ArchitectureError for one that holds something else."""
    todo = "a model's file has 'architecture' and a table [metadata]; see 'perfsuite synthesize --help'"
    return read_toml(path, ModelSpec, ArchitectureError, todo, is_closed=True)
