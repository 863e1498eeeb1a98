"""The catalogue of architectures that ships with the suite, one TOML file each.

A file holds where the model's ``config.json`` is (``source``), its exact published number of parameters where
there is one, and under ``[config]`` the keys of that ``config.json`` from which the architecture follows.
What the suite derived itself, to compare kinds of attention at equal size, has no published number, and a source that
begins with ``perfsuite:``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files

from perfsuite.errors import ArchitectureError
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.huggingface import from_config

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_SUFFIX = ".toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """An architecture of the catalogue and where its dimensions come from."""

    architecture: Architecture
    #: Address of the model's ``config.json``, or ``perfsuite:`` and what it is derived from.
    source: str
    #: Trained weights by the hub's count, tied embeddings once; ``None`` where it is rounded or none is published.
    published_parameters: int | None


@cache
def names() -> tuple[str, ...]:
    """List the architectures of the catalogue in alphabetical order."""
    found = (each.name for each in (files("perfsuite.workload") / "architectures").iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in found if name.endswith(_SUFFIX)))


def find(name: str) -> Architecture:
    """Return an architecture by name, or raise ArchitectureError that suggests the closest names."""
    return entry(name).architecture


@cache
def entry(name: str) -> CatalogEntry:
    """Return an architecture with its source, or raise ArchitectureError that suggests the closest names."""
    if name not in names():
        close = get_close_matches(name, names(), n=3, cutoff=0.5)
        which = f"; did you mean {' or '.join(close)}?" if close else f", which has {', '.join(names())}"
        raise ArchitectureError(f"architecture {name!r} is not in the catalogue{which}")
    text = (files("perfsuite.workload") / "architectures" / f"{name}{_SUFFIX}").read_text(encoding="utf-8")
    values = tomllib.loads(text)
    return CatalogEntry(
        architecture=from_config(values["config"], name=name),
        source=values["source"],
        published_parameters=values.get("published_parameters"),
    )
