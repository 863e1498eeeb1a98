"""Where profiles are looked for."""

from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest

from perfsuite.device.profile import find_profile
from perfsuite.device.profile.record import is_name
from perfsuite.device.profile.search import (
    own_folders,
    profile_files,
    profile_names,
    shipped_names,
    user_folder,
)

BOARD = 'description = "a board"\n'


def test_ones_own_are_looked_for_in_two_folders(tmp_path: Path) -> None:
    assert own_folders(tmp_path) == (tmp_path / "devices", user_folder())
    assert own_folders()[0] == Path("devices")
    assert user_folder() == Path(platformdirs.user_config_dir("perfsuite")) / "devices"
    first, *others = profile_names(folders=())
    assert first == "host"
    assert others == sorted(others)


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


def test_what_is_no_profile_is_not_listed(tmp_path: Path) -> None:
    for name in ("a.toml", "b.txt", ".c.toml", "d e.toml", "-f.toml", ".toml"):
        (tmp_path / name).write_text(BOARD)
    assert set(profile_names(folders=(tmp_path,))) - set(shipped_names()) == {"a"}


def test_a_folder_that_is_not_there_offers_nothing(tmp_path: Path) -> None:
    (tmp_path / "devices").write_text("no folder")
    folders = (tmp_path / "devices", tmp_path / "gone")
    assert set(profile_names(folders=folders)) == set(shipped_names())
    assert find_profile("host", folders=folders).name == "host"


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
