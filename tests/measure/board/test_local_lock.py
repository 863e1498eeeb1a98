"""The lock of this machine, and what ``perfsuite-worker lock`` does about it: its file is anybody's to write."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from perfsuite.measure.board.local_lock import answered_here, lock_holder
from perfsuite.measure.native import find_worker
from perfsuite.records.own_files import user_cache
from tests.device_lock import LOCK_NAME, hold_lock, owner_called

from ..conftest import is_gone


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PERFSUITE_LOCK_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "second name"])
def test_what_is_no_lock_is_refused(folder: Path, kind: str) -> None:
    """No link is followed, and nothing that was there is written to."""
    path, other = folder / LOCK_NAME, folder / "other"
    other.write_text("mine")
    if kind == "link":
        path.symlink_to(other)
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.hardlink_to(other)
    assert "is not a lock of perfsuite's, expected a plain file; remove it" in answered_here("break")["error"]
    assert other.read_text() == "mine"


def test_a_process_that_does_not_have_the_file_open_is_left(folder: Path) -> None:
    """A file can name anybody; only who has it open is ended."""
    with subprocess.Popen(["sleep", "60"]) as other:
        try:
            owner = owner_called("anna")
            with hold_lock(type(owner)(**{**owner.to_plain(), "pid": other.pid}), folder=folder):
                holder = lock_holder()
                assert holder is not None
                assert holder.pid == other.pid
                assert "which cannot be ended from here" in answered_here("break", "--force")["error"]
            assert not is_gone(other.pid)
        finally:
            other.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another account")
def test_another_account_cannot_end_a_run() -> None:
    """It sees who has the device, in the same file; one line names the account that may end it."""
    with TemporaryDirectory() as name:  # another account cannot reach what pytest makes
        check_another_account(Path(name))


def check_another_account(folder: Path) -> None:
    folder.chmod(0o1777)
    program = folder / "program"
    program.write_bytes(find_worker(user_cache()).read_bytes())
    program.chmod(0o755)
    with hold_lock(folder=folder):
        (folder / LOCK_NAME).chmod(0o666)
        environment = {"PERFSUITE_LOCK_DIR": str(folder), "XDG_CACHE_HOME": str(folder / "theirs")}
        command = [str(program), "lock", "break", "--force"]
        told = subprocess.run(command, user=65534, group=65534, extra_groups=[], env=environment, capture_output=True)
    assert "which cannot be ended from here; end it as that account, or as root" in json.loads(told.stdout)["error"]


@pytest.mark.parametrize(("mode", "is_restored"), [(0o700, True), (0o777, False)])
def test_a_killed_run_names_what_must_be_restored(folder: Path, mode: int, is_restored: bool) -> None:
    """A folder to which others can write is only named: what it says is theirs."""
    other = folder / "other"
    other.mkdir()
    (other / "restore.json").write_text("{")
    other.chmod(mode)
    dead = owner_called("ada", state_folder=str(other))
    (folder / LOCK_NAME).write_text(json.dumps(dead.to_plain()))
    killed, *notes = answered_here("break")["notes"]
    assert killed.startswith("the run before this one was killed: ada from desk")
    assert killed.endswith(f"what it has set, if anything, {other} names") is not is_restored
    assert any("is damaged" in each for each in notes) is is_restored
