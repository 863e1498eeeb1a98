"""The versions that a measurement depends on, for ``perfsuite --version``."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from perfsuite import __version__
from perfsuite.errors import EngineError
from perfsuite.measure.environment import environment_engine

#: Beside the suite itself: what runs the tests, what is measured, and what reads the history.
_PACKAGES = ("llama-cpp-python", "pytest", "numpy", "pyopencl", "duckdb")


def versions_text() -> str:
    """Return a line for the suite, which is the first, and one for each thing that it stands on."""
    lines = [f"perfsuite {__version__}", f"Python {platform.python_version()} on {platform.platform()}"]
    return "\n".join([*lines, _engine(), *map(_package, _PACKAGES)])


def _engine() -> str:
    """Name the llama.cpp that would be measured, by its libraries."""
    try:
        engine = environment_engine()
    except EngineError as error:
        return f"llama.cpp none ({error})"
    return f"llama.cpp build {engine.build_id} in {engine.library_dir}"


def _package(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"{name} is not installed"
