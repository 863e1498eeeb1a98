"""What a device answers to a desk about its lock."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.device.lock import LOCK_NAME, lock_holder
from perfsuite.device.lock_command import answer
from perfsuite.device.stability.restore_file import STATE_FOLDER

from .lock_processes import owner_called


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the lock, and what must be restored, be in a folder of the test's own."""
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda _: str(tmp_path / "cache"))
    monkeypatch.setattr("perfsuite.device.lock.lock_folders", lambda: (tmp_path,))
    return tmp_path


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
