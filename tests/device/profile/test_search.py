"""Where profiles are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.profile import find_profile
from perfsuite.device.profile.record import is_name
from perfsuite.device.profile.search import (
    profile_files,
    profile_names,
    user_folder,
)

BOARD = 'description = "a board"\n'


def test_the_working_folder_is_looked_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "desk-pi" not in profile_names()
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices" / "desk-pi.toml").write_text(BOARD)
    assert "desk-pi" in profile_names()
    assert find_profile("desk-pi").description == "a board"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "perfsuite" / "devices"
    folder.mkdir(parents=True)
    (folder / "other.toml").write_text(BOARD)
    assert user_folder() == folder
    assert find_profile("other").description == "a board"


def test_the_first_folder_wins(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rubikpi.toml").write_text(f'description = "{folder}"')
    folders = (tmp_path / "one", tmp_path / "two")
    assert [file.folder for file in profile_files("rubikpi", folders=folders)] == [*folders, None]
    assert find_profile("rubikpi", folders=folders).description == "one"
    assert profile_names(folders=folders).count("rubikpi") == 1


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        *((name, True) for name in ("rubikpi", "a", "7", "desk-pi.2", "Lab_1", "x" * 64)),
        *((name, False) for name in ("", ".", "..", "-x", "a/b", "a b", "a\n", "grün", "$(x)", "a\\b", "x" * 65)),
    ],
)
def test_a_name_is_that_of_a_host(name: str, is_one: bool) -> None:
    """Letters, digits, dots, dashes and underscores: nothing that a shell or a path could take for more."""
    assert is_name(name) is is_one
