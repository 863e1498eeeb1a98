"""Placing, reading and removing a lock in a folder that others may write to."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfsuite.device.lock import hold_lock, place
from perfsuite.device.lock.place import PlacedLock, place_lock, remove_lock
from perfsuite.device.lock.reading import LOCK_NAME, read_lock
from perfsuite.device.lock.state import Holder
from perfsuite.errors import LockedError

from .lock_processes import held_by, owner_called


@pytest.fixture
def placed(tmp_path: Path) -> Iterator[PlacedLock]:
    """A lock of this process's."""
    lock = place_lock(tmp_path, owner_called("anna"))
    assert lock is not None
    yield lock
    lock.remove()


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that everybody may write to, as /tmp is."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o1777)
        yield Path(made)


def test_there_is_one_at_a_time(tmp_path: Path, placed: PlacedLock) -> None:
    """A second one is not placed, and beating changes neither file nor size, so that a full disk does not stop it."""
    assert placed.is_there()
    assert place_lock(tmp_path, owner_called("ben")) is None
    assert os.listdir(tmp_path) == [LOCK_NAME]
    beat = tmp_path / LOCK_NAME / "beat"
    before, content = beat.stat(), beat.read_bytes()
    placed.beat()
    assert (beat.stat().st_ino, beat.stat().st_size) == (before.st_ino, before.st_size)
    assert beat.read_bytes() > content


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_the_umask_does_not_matter(tmp_path: Path, umask: int) -> None:
    """Everybody can read who has the device, as JSON, and only its owner write, whoever took it."""
    before = os.umask(umask)
    try:
        lock = place_lock(tmp_path, owner_called("anna"))
    finally:
        os.umask(before)
    assert lock is not None
    modes = {each.name: oct(each.stat().st_mode & 0o777) for each in (tmp_path / LOCK_NAME).iterdir()}
    assert modes == {"owner.json": "0o644", "beat": "0o644"}
    assert (tmp_path / LOCK_NAME).stat().st_mode & 0o777 == 0o711
    assert json.loads((tmp_path / LOCK_NAME / "owner.json").read_text())["pid"] == os.getpid()
    lock.remove()


def test_another_lock_than_the_one_seen_is_left(tmp_path: Path) -> None:
    """Breaking a lock that changed hands meanwhile breaks nothing."""
    anna = place_lock(tmp_path, owner_called("anna"))
    seen = read_lock(tmp_path)
    assert anna is not None
    assert seen is not None
    anna.remove()
    with hold_lock(owner_called("ben"), folder=tmp_path):
        assert not remove_lock(tmp_path, seen)
        assert read_lock(tmp_path) is not None
    assert not remove_lock(tmp_path, seen)


def test_breaking_and_taking_at_once_leave_one_owner(tmp_path: Path) -> None:
    """While one process takes and gives back the lock, others break it: what is there is whole, always."""
    ended = threading.Event()
    seen: list[str | None] = []

    def look() -> None:
        while not ended.is_set():
            state = read_lock(tmp_path)
            if state is not None:
                seen.append(state.owner.user if state.owner else None)
                remove_lock(tmp_path, state)

    lookers = [threading.Thread(target=look) for _ in range(3)]
    for each in lookers:
        each.start()
    for number in range(200):
        lock = place_lock(tmp_path, owner_called(f"user{number}"))
        if lock is not None:
            lock.remove()
    ended.set()
    for each in lookers:
        each.join()
    assert None not in seen
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("call", "raised"), [("write", OSError(errno.ENOSPC, "No space left")), ("rename", KeyboardInterrupt())]
)
def test_what_is_broken_off_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, raised: BaseException
) -> None:
    """Content that does not fit, or a signal's exception, leaves the folder as it was, and nothing open."""
    open_before = len(os.listdir("/proc/self/fd"))

    def broken_off(*_: object) -> None:
        raise raised

    monkeypatch.setattr(place.os, call, broken_off)
    with pytest.raises(type(raised)):
        place_lock(tmp_path, owner_called("anna"))
    assert os.listdir(tmp_path) == []
    assert len(os.listdir("/proc/self/fd")) == open_before


def test_a_limit_of_file_sizes_is_a_refusal(tmp_path: Path) -> None:
    """In a real process that may write no byte, the lock is refused with one line."""
    program = (
        "import resource, signal, sys; from pathlib import Path;"
        "from tests.device.lock.lock_processes import owner_called;"
        "from perfsuite.device.lock import hold_lock; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, (0, {resource.RLIM_INFINITY}));"
        "hold_lock(owner_called('anna'), folder=Path(sys.argv[1])).__enter__()"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "DeviceError: the device's lock cannot be written" in done.stderr
    assert "File too large" in done.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to act as two users")
def test_another_users_lock_is_read_and_not_removed(shared: Path) -> None:
    """In a folder like /tmp another account sees who has the device, and learns that it cannot break the lock."""
    with held_by(shared, "anna") as process:
        process.kill()
        process.wait()
        child = os.fork()
        if child == 0:
            os._exit(_as_nobody(shared))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert read_lock(shared) is not None


def _as_nobody(folder: Path) -> int:
    os.setgid(65534)
    os.setuid(65534)
    state = read_lock(folder)
    if state is None or state.owner is None or state.owner.user != "anna" or state.holder is not Holder.GONE:
        return 1
    try:
        remove_lock(folder, state)
    except LockedError as error:
        return 0 if "belongs to the account root of the device; remove it as that account" in str(error) else 2
    return 3


def test_old_drafts_of_this_account_are_swept(tmp_path: Path) -> None:
    """What a killed process has begun goes; what may still be under way stays, and so does what is no draft."""
    names = (f".{LOCK_NAME}.1-old", f".{LOCK_NAME}.1-new", "other")
    for name in names:
        (tmp_path / name).mkdir()
    for name in (names[0], "other"):
        os.utime(tmp_path / name, (time.time() - 3600, time.time() - 3600))
    lock = place_lock(tmp_path, owner_called("anna"))
    assert lock is not None
    lock.remove()
    assert sorted(os.listdir(tmp_path)) == sorted(names[1:])


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to act as two users")
def test_another_account_cannot_keep_a_lock_from_being_removed(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It can read whose it is, and not open the folder, so that it cannot have the kernel's lock of it."""
    monkeypatch.setattr(place, "_REMOVAL_LIMIT_S", 0.2)
    lock = place_lock(shared, owner_called("anna"))
    assert lock is not None
    program = (
        "import fcntl, os, sys; os.setgid(65534); os.setuid(65534);"
        "handle = os.open(sys.argv[1], os.O_RDONLY); fcntl.flock(handle, fcntl.LOCK_EX);"
        "print(flush=True); sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", program, str(shared / LOCK_NAME)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as other:
        assert other.stdout is not None
        other.stdout.readline()
        lock.remove()
        assert os.listdir(shared) == []
