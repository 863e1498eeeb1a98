"""The catalogue of architectures that ships with the suite, one TOML file each.

A file holds where the model's ``config.json`` is (``source``), its exact published number of parameters where
there is one, and under ``[config]`` the keys of that ``config.json`` from which the architecture follows.
What the suite derived itself, to compare kinds of attention at equal size, has no published number, and a source that
begins with ``perfsuite:``.

Models of other architectures are in ``listed``: there a file holds the metadata of the model's GGUF and the list of its
tensors, as the engine gave it. In ``tiny`` is the smallest model of each architecture that llama.cpp knows, in the same
form; it is called ``tiny-<architecture>``. Those in ``calibration`` are run by a calibration alone, and not listed.
``tools/model_tensors.py`` asks for the tensors again.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

from perfsuite.errors import ArchitectureError, meant
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.config_metadata import from_config
from perfsuite.workload.model_config import read_config
from perfsuite.workload.model_shape import ModelShape, ModelSpec, read_spec

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_SUFFIX = ".toml"
_TINY = "tiny-"
_FOLDER = Path(__file__).resolve().parent / "architectures"


@cache
def names() -> tuple[str, ...]:
    """List the architectures of the catalogue that the suite knows itself, in alphabetical order."""
    return _names_in(_FOLDER)


@cache
def listed_names() -> tuple[str, ...]:
    """List the models of other architectures."""
    return _names_in(_FOLDER / "listed")


@cache
def tiny_names() -> tuple[str, ...]:
    """List the smallest models, one of each architecture that llama.cpp knows."""
    return tuple(f"{_TINY}{name}" for name in _names_in(_FOLDER / "tiny"))


@cache
def calibration_models() -> tuple[ModelShape, ...]:
    """Return the models that only a calibration runs."""
    folder = _FOLDER / "calibration"
    return tuple(read_spec(folder / f"{name}{_SUFFIX}").shape(name) for name in _names_in(folder))


def _names_in(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(each.name.removesuffix(_SUFFIX) for each in folder.iterdir() if each.name.endswith(_SUFFIX)))


def is_name(name: str) -> bool:
    """Whether the catalogue has a model of this name."""
    return name in names() or name in listed_names() or name in tiny_names()


def find_model(name: str) -> Architecture | ModelShape:
    """Return any model of the catalogue, or raise ArchitectureError that suggests the closest names."""
    return listed(name).shape(name) if name in listed_names() or name in tiny_names() else find(name)


@cache
def listed(name: str) -> ModelSpec:
    """Return what is known of a model whose tensors are listed."""
    folder, file = ("tiny", name.removeprefix(_TINY)) if name in tiny_names() else ("listed", name)
    return read_spec(_FOLDER / folder / f"{file}{_SUFFIX}")


@cache
def find(name: str) -> Architecture:
    """Return an architecture by name, or raise ArchitectureError that suggests the closest names."""
    return from_config(read_config(described(name)["config"]), name)


def described(name: str) -> dict[str, Any]:
    """Return what the file of an architecture says, or raise ArchitectureError that suggests the closest names."""
    if name not in names():
        raise ArchitectureError(f"architecture {name!r} {_problem(name)}")
    return tomllib.loads((_FOLDER / f"{name}{_SUFFIX}").read_text(encoding="utf-8"))


def _problem(name: str) -> str:
    if is_name(name):
        return f"can be measured, but the suite cannot count its work; it can that of {', '.join(names())}"
    which = meant(name, [*names(), *listed_names(), *tiny_names()], most=3) or f", which has {', '.join(names())}"
    return f"is not in the catalogue{which}"
