"""What a device answers to a desk about its lock."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.device.lock import hold_lock
from perfsuite.device.lock.command import answer, main
from perfsuite.device.lock.place import place_lock
from perfsuite.device.lock.state import STATE_FOLDER

from .lock_processes import owner_called


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the lock, and what must be restored, be in a folder of the test's own."""
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda _: str(tmp_path / "cache"))
    monkeypatch.setattr("perfsuite.device.lock.holding.lock_folders", lambda: (tmp_path,))
    return tmp_path


def test_a_lock_is_described_and_broken_by_force() -> None:
    """A holder that runs is refused first, and given up with force."""
    with hold_lock(owner_called("anna")):
        assert answer(["state"])["lock"]["owner"]["user"] == "anna"
        assert "held by anna" in answer(["break"])["error"]
        assert answer(["break", "--force"])["lock"]["holder"] == "runs"
        assert answer(["state"]) == {"lock": None, "notes": []}


@pytest.mark.parametrize("words", [[], ["burn"], ["break", "it"]])
def test_other_words_are_an_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The answer says which words there are, as JSON, with exit code 2."""
    assert main(words) == 2
    assert json.loads(capsys.readouterr().out) == {"error": "give 'state', 'break' or 'break --force'"}


def left_in(folder: Path, change_dir: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Leave a lock of a crashed run that names a folder; return the folders from which something is restored."""
    asked: list[Path] = []
    monkeypatch.setattr(
        "perfsuite.device.stability.restore_file.restore_leftovers", lambda each: asked.append(each) or ()
    )
    owner = replace(owner_called("anna"), pid=2**22 + 1, state_folder=str(change_dir))
    assert place_lock(folder, owner) is not None
    return asked


def test_what_the_lock_names_is_restored(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with another cache than this process's has left there what must be restored."""
    asked = left_in(folder, tmp_path / "another", monkeypatch)
    assert answer(["break"])["notes"] == []
    assert asked == [tmp_path / "cache" / STATE_FOLDER, tmp_path / "another"]


def test_what_another_accounts_lock_names_is_not_followed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root reads nothing in a folder that anybody may have named; the answer says who can."""
    asked = left_in(folder, tmp_path / "another", monkeypatch)
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
    (note,) = answer(["break"])["notes"]
    assert asked == [tmp_path / "cache" / STATE_FOLDER]
    assert f"is kept in {tmp_path}/another; 'perfsuite devices unlock' as the account" in note


def test_an_account_without_a_name_breaks_a_lock(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system knows no name for the account, as in a container, its number will do."""

    def unknown(_: int) -> None:
        raise KeyError("no such account")

    monkeypatch.setattr("pwd.getpwuid", unknown)
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    assert answer(["break"]) == {"lock": None, "notes": []}
