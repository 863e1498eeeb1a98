"""The tool that makes llama.cpp's OpenCL backend, where there is little to make."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from perfsuite.measure.engine import Engine
from perfsuite.measure.environment import environment_engine
from perfsuite.measure.opencl_backend import backend_library

from .synthetic_opencl_backend import written

TOOL = Path(__file__).parents[1] / "tools" / "opencl_backend.sh"


def made(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command, variables = [str(TOOL), *arguments], {**os.environ, "PYTHON": sys.executable, **environment}
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def own_engine() -> Engine:
    return environment_engine()


@pytest.fixture
def folder(tmp_path: Path, own_engine: Engine) -> Path:
    """Return a cache in which the backend is made already, by its folder."""
    found = tmp_path / "perfsuite" / f"opencl-backend-{own_engine.build_id}"
    for name in ("plain", "profiling"):
        written(found / name / "libggml-opencl.so")
    return found


def test_what_is_made_is_not_made_again(folder: Path, tmp_path: Path) -> None:
    """The tool prints the folder and nothing else, and leaves what is there."""
    for options, place in (((), "plain"), (("--profiling",), "profiling")):
        done = made(*options, XDG_CACHE_HOME=str(tmp_path))
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{folder}/{place}\n", "")
    assert (folder / "plain" / "libggml-opencl.so").read_text() == "libggml-opencl.so"
    assert {path.name for path in folder.parent.iterdir()} == {folder.name, "opencl-backend.lock"}


def test_the_suite_looks_where_the_tool_puts_it(folder: Path, own_engine: Engine) -> None:
    assert backend_library(own_engine, folder.parent) == folder / "plain" / "libggml-opencl.so"


def test_a_source_that_cannot_be_had_leaves_nothing_behind(tmp_path: Path) -> None:
    """What the download said and one line are reported, in a cache that is made for it; the next call tries anew."""
    stub = written(tmp_path / "python")
    stub.write_text('#!/bin/sh\n[ "$1" = - ] && echo "9.9 abc /engine" && exit\necho "no such release"\nexit 1\n')
    stub.chmod(0o755)
    for _ in range(2):
        done = made(PYTHON=str(stub), CC="true", XDG_CACHE_HOME=str(tmp_path / "new" / "cache"))
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.splitlines() == [
            "opencl-backend: downloading the source of llama-cpp-python 9.9",
            "no such release",
            "opencl-backend: the source cannot be had",
        ]
    left = (tmp_path / "new" / "cache" / "perfsuite").iterdir()
    assert [path.name for path in left] == ["opencl-backend.lock"]
