"""Processes whose memory is limited."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perfsuite.measure.memory_limit import LEAST_LIMIT_BYTES, drop_file_pages, limited_memory, memory_limit_obstacle

#: Reads a file through a mapping when it is told to, and says so; then waits to be told to end.
_READER = """
import mmap, sys
sys.stdin.readline()
with open(sys.argv[1], "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
    for _ in range(2):
        sum(mapped[at] for at in range(0, len(mapped), 4096))
    print("read", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def reader(path: Path) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [sys.executable, "-c", _READER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield child
        child.communicate("\n\n", timeout=60)
    finally:
        child.kill()
        child.wait(timeout=60)


@pytest.fixture(scope="module")
def _permitted() -> None:
    if obstacle := memory_limit_obstacle():
        pytest.skip(obstacle)


@pytest.mark.usefixtures("_permitted")
def test_a_mapped_file_beyond_the_limit_is_paged_in_again_and_again(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(os.urandom(1 << 20) * 128)
    drop_file_pages(path)
    limit_bytes = 48 << 20
    with reader(path) as child, limited_memory(child.pid, limit_bytes) as group:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "read\n"
        assert group.n_refaults is None or group.n_refaults > 0
        assert group.n_killed == 0
    assert not group.path.exists()


@pytest.mark.usefixtures("_permitted")
def test_a_process_goes_back_to_its_group(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(bytes(4096))
    with reader(path) as child:
        where = Path(f"/proc/{child.pid}/cgroup")
        before = where.read_text()
        with limited_memory(child.pid, LEAST_LIMIT_BYTES) as group:
            assert group.path.name in where.read_text()
        assert where.read_text() == before
        assert not group.path.exists()
