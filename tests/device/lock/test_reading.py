"""Finding the lock of a machine, and reading it in a folder that others may write to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfsuite.device.lock import hold_lock, reading
from perfsuite.device.lock.place import PlacedLock, place_lock
from perfsuite.device.lock.reading import LOCK_NAME, account_name, lock_folders, read_lock
from perfsuite.device.lock.state import Holder, LockState
from perfsuite.errors import DeviceError, LockedError

from .lock_processes import owner_called


@pytest.fixture
def placed(tmp_path: Path) -> Iterator[PlacedLock]:
    """A lock of this process's."""
    lock = place_lock(tmp_path, owner_called("anna"))
    assert lock is not None
    yield lock
    lock.remove()


def found(folder: Path) -> LockState:
    """The lock of a folder."""
    state = read_lock(folder)
    assert state is not None
    return state


@pytest.mark.parametrize("leads_to", ["folder", "nowhere", ""])
def test_a_link_is_not_followed(tmp_path: Path, leads_to: str) -> None:
    """Somebody's link with the lock's name is refused, as a file is, and nothing is written where it leads."""
    (tmp_path / "folder").mkdir()
    (tmp_path / LOCK_NAME).symlink_to(tmp_path / leads_to) if leads_to else (tmp_path / LOCK_NAME).write_text("mine")
    with pytest.raises(DeviceError, match=r"perfsuite-device\.lock: is not a lock of perfsuite's .*; remove it"):
        read_lock(tmp_path)
    with pytest.raises(DeviceError), hold_lock(owner_called("anna"), folder=tmp_path):
        pass
    assert os.listdir(tmp_path / "folder") == []


def test_links_within_are_not_followed(tmp_path: Path, placed: PlacedLock) -> None:
    """A file of a lock that is a link says nothing."""
    owner = tmp_path / LOCK_NAME / "owner.json"
    owner.rename(tmp_path / "elsewhere")
    owner.symlink_to(tmp_path / "elsewhere")
    state = found(tmp_path)
    assert state.owner is None


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff", b'{"user": 1}', b"[" * 20_000], ids=lambda each: each[:9]
)
def test_a_damaged_owner_is_unknown(tmp_path: Path, placed: PlacedLock, content: bytes) -> None:
    """What cannot be read is nobody in particular; its heart still beats, so it counts as running."""
    (tmp_path / LOCK_NAME / "owner.json").write_bytes(content)
    state = found(tmp_path)
    assert (state.owner, state.holder) == (None, Holder.RUNS)


def test_a_beat_that_cannot_be_read_is_none(tmp_path: Path, placed: PlacedLock) -> None:
    """Two halves that differ are not believed, and a named pipe in its place is passed over at once."""
    beat = tmp_path / LOCK_NAME / "beat"
    beat.write_bytes(b"1 2\n")
    assert found(tmp_path).beat_age_s is None
    beat.unlink()
    os.mkfifo(beat)
    assert found(tmp_path).beat_age_s is None


def test_the_folders_are_known_ones(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They do not depend on a user's TMPDIR, unless there is no other that can be written."""
    monkeypatch.setattr(reading.tempfile, "gettempdir", lambda: str(tmp_path))
    assert tmp_path not in lock_folders()
    assert lock_folders()
    monkeypatch.setattr(reading.os, "access", lambda *_: False)
    assert lock_folders()[-1] == tmp_path


@pytest.mark.parametrize("moment_ns", [2**63, 10**400, int(9e18)])
def test_a_beat_that_is_still_to_come_is_not_known(tmp_path: Path, placed: PlacedLock, moment_ns: int) -> None:
    """A lock that somebody else writes neither keeps the device forever nor breaks the run that reads it."""
    (tmp_path / LOCK_NAME / "beat").write_text(f"{moment_ns} {moment_ns}\n")
    state = found(tmp_path)
    assert (state.beat_age_s, state.holder) == (None, Holder.HANGS)


def test_an_endless_count_is_no_owner(tmp_path: Path, placed: PlacedLock) -> None:
    """Anybody may write one; the run that reads it is refused in one line."""
    owner = tmp_path / LOCK_NAME / "owner.json"
    owner.write_text(owner.read_text().replace('"began_ns": ', f'"began_ns": 1{"0" * 400}'))
    with pytest.raises(LockedError, match="held by the account"), hold_lock(owner_called("ben"), folder=tmp_path):
        pass


def test_whose_it_is_is_read_from_the_folder(tmp_path: Path, placed: PlacedLock) -> None:
    """The account is that of whoever has made it, by its number where it has no name, as in a container."""
    state = found(tmp_path)
    assert (state.uid, state.account, state.is_own) == (os.geteuid(), account_name(os.geteuid()), True)
    assert account_name(2**31 - 7) == str(2**31 - 7)
