"""How the tests of the native part find CMake, and build with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[2] / "native"


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeToolchain:
    """CMake and the compilers that this machine has."""

    cmake: str
    ctest: str
    compiler: str
    generator: tuple[str, ...]

    def build(self, folder: Path, **options: str) -> None:
        """Configure and build ``native/`` in a folder, with cache variables as options."""
        defines = [f"-D{name}={value}" for name, value in options.items()]
        run([self.cmake, "-S", str(NATIVE), "-B", str(folder), *self.generator, *defines])
        run([self.cmake, "--build", str(folder), "--parallel", "2"])


def run(command: Sequence[str]) -> str:
    """Run a command to its end within a quarter of an hour, and fail the test with its output where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode != 0:
        pytest.fail(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


@pytest.fixture(scope="session")
def toolchain() -> NativeToolchain:
    """Return the tools, or skip where one is missing."""
    found = {name: _which(name) for name in ("cmake", "ctest", "cc", "c++")}
    missing = [name for name, path in found.items() if path is None]
    ninja = _which("ninja")
    if ninja is None and _which("make") is None:
        missing.append("ninja or make")
    if missing:
        pytest.skip(f"the native part cannot be built here: no {', '.join(missing)}")
    generator = ("-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}") if ninja else ()
    return NativeToolchain(
        cmake=str(found["cmake"]), ctest=str(found["ctest"]), compiler=str(found["cc"]), generator=generator
    )


def _which(name: str) -> str | None:
    """Find a program beside the interpreter first, for a virtual environment may be used without being activated."""
    return shutil.which(name, path=os.pathsep.join((sysconfig.get_path("scripts"), os.environ.get("PATH", ""))))
