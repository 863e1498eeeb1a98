"""The Containerfile: what it names is there, and what it copies is not left out."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]

#: The instructions, each on one line and without comments.
STEPS = [
    line.partition(" ")[::2]
    for line in re.sub(r"^#.*\n|\\\n", "", (ROOT / "Containerfile").read_text(), flags=re.MULTILINE).splitlines()
    if line
]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def words_of(instruction: str) -> list[list[str]]:
    return [shlex.split(rest) for name, rest in STEPS if name == instruction]


COPIED = [source for *sources, _ in words_of("COPY") for source in sources]


def test_what_is_copied_is_there_and_not_ignored() -> None:
    """Each source of COPY is a file or folder of the checkout that .dockerignore lets pass, and no other passes."""
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert [each for each in COPIED if not (ROOT / each).exists()] == []
    assert sorted(f"!{each}" for each in COPIED) == sorted(line for line in ignored if line.startswith("!"))


def test_what_pyproject_names_is_copied() -> None:
    """The wheel is built of what is copied: its readme, licence, sources, package, and what CMake installs."""
    backend, project = PYPROJECT["tool"]["scikit-build"], PYPROJECT["project"]
    installed = r"\{CMAKE_CURRENT_SOURCE_DIR\}/\.\./(\S+)/ DESTINATION"
    wanted = {
        project["readme"],
        *project["license-files"],
        backend["cmake"]["source-dir"],
        *backend["wheel"]["packages"],
        *re.findall(installed, (ROOT / "native/CMakeLists.txt").read_text()),
    }
    assert {"share", "baselines/published"} <= wanted <= set(COPIED)
