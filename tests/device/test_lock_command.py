"""What a device answers to a desk about its lock."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.device.lock import LOCK_NAME, hold_lock, lock_holder
from perfsuite.device.lock_command import answer, main
from perfsuite.device.stability.restore_file import STATE_FOLDER

from .lock_processes import owner_called


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the lock, and what must be restored, be in a folder of the test's own."""
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda _: str(tmp_path / "cache"))
    monkeypatch.setattr("perfsuite.device.lock.lock_folders", lambda: (tmp_path,))
    return tmp_path


@pytest.mark.parametrize("words", [[], ["burn"], ["break", "it"]])
def test_other_words_are_an_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert json.loads(capsys.readouterr().out) == {"error": "give 'state', 'break' or 'break --force'"}


def test_what_a_killed_run_names_is_restored(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it had another cache than this process has, once, with the lock in hand."""
    asked: list[tuple[Path, bool]] = []
    monkeypatch.setattr(
        "perfsuite.device.stability.restore_file.restore_leftovers",
        lambda each: asked.append((each, lock_holder() is not None)) or (),
    )
    (folder / "another").mkdir()
    left = replace(owner_called("anna"), state_folder=str(folder / "another"))
    (folder / LOCK_NAME).write_text(json.dumps(left.to_plain()))
    (note,) = answer(["break"])["notes"]
    assert note.startswith("the run before this one was killed: anna from desk")
    assert asked == [(folder / "cache" / STATE_FOLDER, True), (folder / "another", True)]
    assert answer(["break"])["notes"] == []


def test_an_account_without_a_name_asks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system knows no name for the account, as in a container, its number will do."""

    def unknown(_: int) -> None:
        raise KeyError("no such account")

    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert answer(["break"]) == {"lock": None, "notes": []}
    with hold_lock(owner_called("anna")):
        assert answer(["state"])["lock"]["account"].isdecimal()
