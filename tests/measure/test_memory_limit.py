"""Processes whose memory is limited."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure import memory_limit
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
    """Start a process that reads a file when a line comes, and ends with the next."""
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


def test_what_cannot_be_limited_is_named(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match=f"1000 bytes, expected {LEAST_LIMIT_BYTES}"), limited_memory(1, 1000):
        pass
    gone = 2**22 + 1
    with pytest.raises(MeasurementError, match=f"process {gone} is gone"), limited_memory(gone, LEAST_LIMIT_BYTES):
        pass
    with pytest.raises(MeasurementError, match="nowhere: cannot be read"):
        drop_file_pages(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("mounts", "text"),
    [("tmpfs /run tmpfs rw 0 0\n", "no memory controller"), ("cgroup {} cgroup rw,memory 0 0\n", "no control group")],
)
def test_a_machine_without_groups_says_the_one_thing_that_is_missing(
    mounts: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    listing = tmp_path / "mounts"
    listing.write_text(mounts.format(blocked))
    monkeypatch.setattr(memory_limit, "_MOUNTS", listing)
    obstacle = memory_limit_obstacle()
    assert obstacle is not None
    assert text in obstacle
    assert "\n" not in obstacle


def test_version_2_is_found_where_it_has_the_controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    listing = tmp_path / "mounts"
    listing.write_text(f"cgroup2 {tmp_path} cgroup2 rw 0 0\n")
    monkeypatch.setattr(memory_limit, "_MOUNTS", listing)
    obstacle = memory_limit_obstacle()
    assert obstacle == f"memory limit: {tmp_path}: memory is not delegated to groups below it"
    assert not list(tmp_path.glob("perfsuite-*"))
