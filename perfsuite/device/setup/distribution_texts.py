"""What pip has to know of the suite: its requirements and its entry points, from the checkout or the installed one."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from perfsuite import __version__
from perfsuite.errors import DeviceError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_WHEEL = "Wheel-Version: 1.0\nGenerator: perfsuite\nRoot-Is-Purelib: true\nTag: py3-none-any\n"

#: What is measured: it is compiled on the device, before all else.
_ENGINE_PACKAGE = "llama-cpp-python"


def distribution_texts(root: Path) -> dict[str, str]:
    """Return the files of ``.dist-info``, by name; `root` is the folder that holds the package.

    A checkout's own pyproject.toml comes first: what an editable installation noted does not follow edits.
    """
    project = _checkout_project(root)
    entry_points = _installed_text("entry_points.txt") if project is None else "\n".join(_entry_points(project))
    required = "".join(f"Requires-Dist: {each}\n" for each in suite_requirements(root))
    metadata = f"Metadata-Version: 2.1\nName: perfsuite\nVersion: {__version__}\nRequires-Python: >=3.10\n{required}"
    return {"METADATA": metadata, "WHEEL": _WHEEL, "entry_points.txt": entry_points}


def suite_requirements(root: Path) -> tuple[str, ...]:
    """Return what pip installs beside the suite, without extras."""
    project = _checkout_project(root)
    if project is not None:
        return tuple(project["dependencies"])
    lines = _installed_text("METADATA").split("\n\n")[0].splitlines()
    told = [line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: ")]
    return tuple(each for each in told if "extra ==" not in each)


def engine_requirement(requirements: tuple[str, ...]) -> str:
    """Return the requirement that brings llama.cpp: ``llama-cpp-python==0.3.36``."""
    return next(each for each in requirements if each.startswith(_ENGINE_PACKAGE))


def _checkout_project(root: Path) -> Mapping[str, Any] | None:
    """Return the table ``[project]`` of the checkout in `root`; None where that is none of this suite."""
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return None
    return project if project.get("name") == "perfsuite" else None


def _entry_points(project: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of entry_points.txt."""
    groups = {"console_scripts": project.get("scripts", {}), **project.get("entry-points", {})}
    for name, entries in groups.items():
        yield f"[{name}]"
        yield from (f"{entry} = {place}" for entry, place in entries.items())
        yield ""


def _installed_text(name: str) -> str:
    try:
        text = distribution("perfsuite").read_text(name)
    except PackageNotFoundError:
        text = None
    if text is None:
        raise DeviceError(f"perfsuite {__version__}: {name} of the installation is not there; reinstall the suite")
    return text
