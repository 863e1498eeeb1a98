"""A model of any architecture as a short TOML file says it: metadata of its GGUF, and which tensors it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perfsuite.errors import ArchitectureError
from perfsuite.records.codec import read_toml
from perfsuite.workload.model_shape import MetadataValue, ModelShape
from perfsuite.workload.tensor_list import in_full

_TODO = "a model's file has 'architecture' and a table [metadata]; see 'perfsuite synthesize --help'"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """What such a file holds."""

    #: The value of ``general.architecture``.
    architecture: str
    #: Keys without the prefix ``<architecture>.``.
    metadata: Mapping[str, MetadataValue]
    #: Kinds of tensors that a file may lack and this model has, such as ``attn_q.bias``; and those that it lacks
    #: although the engine cannot build a graph without.
    wanted: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()
    #: As the engine listed them; `tensor_list.shortened`.
    tensors: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    #: Of the catalogue's: the address of the ``config.json``, the published number of trained weights if exact, and
    #: why that is not the number in the tensors, where it is not.
    source: str = ""
    published_parameters: int | None = None
    deviation: str = ""

    def shape(self, name: str) -> ModelShape:
        """Return the model's shape under a name."""
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
    return read_toml(path, ModelSpec, ArchitectureError, _TODO, is_closed=True)
