"""Waiting for llama.cpp in a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.engine_process import await_engine, is_alive, mapped_files, missing_library, refuse_other_user

#: Maps the files that it is given after a pause, and stays.
_MAPPER = """
import mmap, sys, time
time.sleep(0.1)
files = [open(path, 'rb') for path in sys.argv[1:]]
kept = [mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) for file in files]
print('mapped', flush=True)
sys.stdin.read()
"""


@contextmanager
def _mapping(*paths: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", _MAPPER, *map(str, paths)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.communicate(timeout=20)


def _libraries(folder: Path, *names: str) -> list[Path]:
    paths = [folder / name for name in names]
    for path in paths:
        path.write_bytes(bytes(64))
    return paths


def test_a_program_that_loads_llama_later_is_waited_for(tmp_path: Path) -> None:
    """Python's binding loads the libraries long after the process began."""
    with _mapping(*_libraries(tmp_path, "libllama.so.0", "libggml-base.so.0", "libggml-cpu-haswell.so")) as process:
        assert await_engine(process.pid, limit_s=20)
        assert missing_library(process.pid) is None


def test_what_is_missing_is_named_after_the_limit(tmp_path: Path) -> None:
    expected = "no libggml-base.so after 0.3 s; is it a llama.cpp"
    with _mapping(*_libraries(tmp_path, "libllama.so.0")) as process, pytest.raises(MeasurementError, match=expected):
        await_engine(process.pid, limit_s=0.3)


def test_a_program_that_ends_is_not_waited_for() -> None:
    """One that has ended and was not yet asked for its exit code counts as ended."""
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    assert not await_engine(process.pid)
    assert not is_alive(process.pid)
    process.wait(20)
    assert not is_alive(process.pid)


def test_a_process_that_is_not_there_is_told() -> None:
    """The number that a user gave may be an old one."""
    refuse_other_user(os.getpid())
    for look in (mapped_files, refuse_other_user):
        with pytest.raises(MeasurementError, match="process 999999999: is not there"):
            look(999999999)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become somebody else")
def test_root_is_refused_another_users_process() -> None:
    """Not even root follows a process of somebody else's: it would run what that user has made. All four ids count."""
    process = subprocess.Popen(["sleep", "60"], user=65534, group=65534, extra_groups=[])
    try:
        with pytest.raises(MeasurementError, match="belongs to another user; trace it as that user"):
            refuse_other_user(process.pid)
    finally:
        process.kill()
        process.wait(20)
