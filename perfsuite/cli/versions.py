"""The versions that a measurement depends on, for ``perfsuite --version``."""

from __future__ import annotations

import os
import platform
import re
import sys
from contextlib import suppress

from perfsuite import __version__
from perfsuite.errors import EngineError
from perfsuite.measure.environment import environment_engine

#: Beside the suite itself: what runs the tests, what is measured, and what reads the history.
_PACKAGES = ("llama-cpp-python", "pytest", "numpy", "pyopencl", "duckdb")

#: The folder beside a package that names it and its version; `importlib.metadata` takes longer than all else here.
_INFO = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)(-py[\d.]+)?\.(dist|egg)-info")


def versions_text() -> str:
    """Return a line for the suite, which is the first, and one for each thing that it stands on."""
    installed = _installed()
    packages = (f"{name} {installed.get(name, 'is not installed')}" for name in _PACKAGES)
    system = f"Python {platform.python_version()} on {platform.platform()}"
    return "\n".join([f"perfsuite {__version__}", system, _engine(), *packages])


def _engine() -> str:
    """Name the llama.cpp that would be measured, by its libraries."""
    try:
        engine = environment_engine()
    except EngineError as error:
        return f"llama.cpp none ({error})"
    return f"llama.cpp build {engine.build_id} in {engine.library_dir}"


def _installed() -> dict[str, str]:
    """Return the version of each package that Python finds, by its name; the first place counts."""
    found: dict[str, str] = {}
    for folder in sys.path:
        with suppress(OSError):
            for match in map(_INFO.fullmatch, sorted(os.listdir(folder or "."))):
                if match is not None:
                    found.setdefault(match["name"].replace("_", "-").lower(), match["version"])
    return found
