"""Copies that go wrong: full disks, links that end in the middle, files that change on the way."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from perfsuite.device.reach import Reach
from perfsuite.device.target import copying
from perfsuite.device.target.opening import open_target
from perfsuite.device.target.shell_target import Target
from perfsuite.errors import LinkError

from ...board_adb import fake_adb
from ...board_namespaces import NamespaceBoard
from ...board_processes import own_mounts

#: Takes more than half a second over a board's link: time enough to break it.
LARGE_BYTES = 150 << 20


@pytest.fixture
def large(tmp_path: Path) -> Path:
    with (tmp_path / "large").open("wb") as out:
        out.truncate(LARGE_BYTES)
    return tmp_path / "large"


@pytest.fixture
def target(fresh_board: NamespaceBoard) -> Iterator[Target]:
    opened = open_target(fresh_board.reach())
    yield opened
    opened.close()


@contextmanager
def meanwhile(*steps: Callable[[], object]) -> Iterator[None]:
    thread = threading.Thread(target=lambda: [each() for each in steps])
    thread.start()
    try:
        yield
    finally:
        thread.join()


def until_it_arrives(board: NamespaceBoard, folder: str) -> None:
    end = time.monotonic() + 20
    while not any(each.stat().st_size for each in board.outside(folder).glob(".perfsuite-*")):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_full_disk_is_told_by_the_device(fresh_board: NamespaceBoard, target: Target, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x" * 3_000_000)
    fresh_board.run("mkdir", "place")
    fresh_board.fill_disk(free_bytes=1_000_000)
    with pytest.raises(
        LinkError, match=r"place/x was not put: .*No space left on device; free some space there"
    ) as failed:
        target.put(source, "place/x")
    assert "\n" not in str(failed.value)
    assert fresh_board.run("ls", "-A", "place").stdout == ""
    fresh_board.free_disk()
    target.put(source, "place/x")
    assert fresh_board.outside("place/x").read_bytes() == source.read_bytes()


def test_a_put_whose_link_ends_leaves_what_was_there(fresh_board: NamespaceBoard, target: Target, large: Path) -> None:
    fresh_board.run("sh", "-c", "mkdir place; echo old >place/x")
    arrival, cut = partial(until_it_arrives, fresh_board, "place"), partial(fresh_board.kill, r"^sshd: root@")
    with meanwhile(arrival, cut), pytest.raises(LinkError, match="the link was lost in the middle"):
        target.put(large, "place/x")
    assert fresh_board.outside("place/x").read_text() == "old\n"
    target.put(large, "place/x")
    assert fresh_board.outside("place/x").stat().st_size == LARGE_BYTES
    assert fresh_board.run("ls", "-A", "place").stdout == "x\n"


def test_a_put_into_a_board_that_loses_power(fresh_board: NamespaceBoard, target: Target, large: Path) -> None:
    """Where the board itself goes down, a temporary file is all that is left, and the next put sweeps it."""
    fresh_board.run("sh", "-c", "mkdir place; echo old >place/x")
    arrival = partial(until_it_arrives, fresh_board, "place")
    with meanwhile(arrival, fresh_board.reboot), pytest.raises(LinkError, match="the link was lost in the middle"):
        target.put(large, "place/x")
    assert fresh_board.outside("place/x").read_text() == "old\n"
    assert len(os.listdir(fresh_board.outside("place"))) == 2
    target.put(large, "place/x")
    assert fresh_board.run("ls", "-A", "place").stdout == "x\n"


def test_a_get_whose_link_ends_leaves_what_was_here(
    fresh_board: NamespaceBoard, target: Target, tmp_path: Path
) -> None:
    fresh_board.run("truncate", "-s", str(LARGE_BYTES), "x")
    here = tmp_path / "here"
    here.mkdir()
    (here / "x").write_text("old")

    def breaking() -> None:
        while not any(each.stat().st_size for each in here.glob(".perfsuite-*")):
            time.sleep(0.01)
        fresh_board.kill(r"^sshd: root@")

    with meanwhile(breaking), pytest.raises(LinkError, match="the link was lost in the middle"):
        target.get("x", here / "x")
    assert [each.name for each in here.iterdir()] == ["x"]
    assert (here / "x").read_text() == "old"
    target.get("x", here / "x")
    assert (here / "x").stat().st_size == LARGE_BYTES


def test_a_get_sweeps_what_dead_ones_left(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("text")
    here = tmp_path / "here"
    here.mkdir()
    stem = ".perfsuite-2d711642b726b044"  # the hash of the name x
    started = Path("/proc/1/stat").read_text().rpartition(")")[2].split()[19]
    for owner in ("999999999-1", f"1-{started}1", "1", f"1-{started}"):
        (here / f"{stem}.{owner}").touch()
    open_target(Reach()).get(str(tmp_path / "x"), here / "x")
    assert sorted(each.name for each in here.iterdir()) == [f"{stem}.1-{started}", "x"]


def test_a_desk_that_is_full_is_told(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from perfsuite.device.reach import Reach\n"
        "from perfsuite.device.target.opening import open_target; from perfsuite.errors import LinkError\n"
        "try: open_target(Reach()).get(sys.argv[1], Path(sys.argv[2]))\n"
        "except LinkError as error: print(error, os.listdir(Path(sys.argv[2]).parent))"
    )
    small = tmp_path / "small"
    small.mkdir()
    with (tmp_path / "large").open("wb") as out:
        out.truncate(3 << 20)
    mount = 'mount -t tmpfs -o size=1m test "$1" && shift && exec "$@"'
    python = [sys.executable, "-c", code, str(tmp_path / "large"), str(small / "x")]
    own = own_mounts() if os.geteuid() == 0 else ("unshare", "--mount", "--map-root-user")
    command = [*own, "sh", "-c", mount, "sh", str(small), *python]
    told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if told.stderr and "perfsuite" not in told.stderr:
        pytest.skip(f"boards: no small disk can be made here ({told.stderr.strip()})")
    assert told.stdout == f"{small / 'x'}: cannot be written (No space left on device) []\n"


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("#!/bin/sh\necho 1234 -\n", "was not got: 4 of 4 bytes arrived, or it changed meanwhile"),
        ("#!/bin/sh\necho sha256sum: not here >&2; exit 127\n", "sha256sum: not here"),
    ],
)
def test_a_hash_that_does_not_fit_is_told(tmp_path: Path, program: str, words: str) -> None:
    (tmp_path / "adb").mkdir()
    with fake_adb(tmp_path / "adb") as home:
        (tool := tmp_path / "adb" / "system-bin" / "sha256sum").unlink()
        tool.write_text(program)
        tool.chmod(0o755)
        (home / "x").write_text("text")
        target = open_target(Reach(way="adb"))
        with pytest.raises(LinkError, match=words):
            target.get("x", tmp_path / "back")
        with pytest.raises(LinkError, match=r"it arrived changed|not here"):
            target.put(home / "x", "y")
        assert sorted(os.listdir(home)) == ["x"]
    assert not (tmp_path / "back").exists()


def test_signals_that_come_twice_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``timeout`` sends its signal to a program and once more to its group; what receives a file still tidies up."""
    programs, place = tmp_path / "bin", tmp_path / "place"
    programs.mkdir()
    place.mkdir()
    (programs / "rm").write_text(f'#!/bin/sh\n: >"{tmp_path}/tidying"; sleep 0.3; exec {shutil.which("rm")} "$@"\n')
    (programs / "rm").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    command = ["sh", "-c", copying._RECEIVE, "sh", f"{place}/x", ".perfsuite-x", "1", ""]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    for seen in (lambda: list(place.iterdir()), (tmp_path / "tidying").exists):
        end = time.monotonic() + 20
        while not seen() and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.1)  # a program that is just being started can miss a signal
        os.killpg(process.pid, signal.SIGTERM)
    process.communicate(timeout=20)
    assert list(place.iterdir()) == []
