"""The folders of nights."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.errors import LockedError, PerfsuiteError
from perfsuite.nightly import night_folder
from perfsuite.nightly.night_folder import held_night, last_night, new_night
from perfsuite.nightly.night_state import STATE_NAME


def test_each_night_has_a_folder_and_latest_leads_to_the_last(tmp_path: Path) -> None:
    """Two that begin within a second do not share one; folders without a state are no nights."""
    nights = [new_night(tmp_path), new_night(tmp_path), new_night(tmp_path)]
    assert len(set(nights)) == 3
    assert (tmp_path / "latest").resolve() == nights[-1].resolve()
    for night in nights[:2]:
        (night / STATE_NAME).touch()
    assert last_night(tmp_path) == nights[1]


def test_one_process_is_at_a_night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second one waits for a while, and is refused."""
    monkeypatch.setattr(night_folder, "_ENDING_LIMIT_S", 0.1)
    with held_night(tmp_path), pytest.raises(LockedError, match="is at this night"), held_night(tmp_path):
        pass
    with held_night(tmp_path):
        pass


def test_a_folder_that_is_called_latest_is_left_alone(tmp_path: Path) -> None:
    """It is told before a night is made; so is a file in a night's way."""
    (tmp_path / "latest").mkdir()
    with pytest.raises(PerfsuiteError, match="latest: is no link of a night's; move it away"):
        new_night(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["latest"]
    (tmp_path / "file").touch()
    with pytest.raises(PerfsuiteError, match="cannot be made"):
        new_night(tmp_path / "file")
