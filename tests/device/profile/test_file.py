"""One file of a profile."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from perfsuite.device.profile.file import ProfileFile
from perfsuite.errors import DeviceError


def file_at(path: Path) -> ProfileFile:
    return ProfileFile(name=path.stem, place=path, where=str(path), folder=path.parent)


def refusal(path: Path) -> str:
    """What reading a file is refused with, without the path that it has to begin with."""
    with pytest.raises(DeviceError) as caught:
        file_at(path).tables()
    told = str(caught.value)
    assert told.startswith(f"{path}: ")
    assert "\n" not in told
    return told.removeprefix(f"{path}: ")


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "board.toml"
    path.write_bytes(b'description = "a board"\r\n[reach]\r\nport = 22\r\n')
    assert file_at(path).tables() == {"description": "a board", "reach": {"port": 22}}


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (Path.mkdir, "is a folder, expected a profile's file"),
        (lambda path: path.symlink_to("gone.toml"), "is not a file, or a link to none; expected a profile's file"),
        (os.mkfifo, "is not a file, or a link to none; expected a profile's file"),
    ],
    ids=["folder", "link to nowhere", "pipe, which would keep a reader for ever"],
)
def test_what_is_no_file_is_told(make: Callable[[Path], object], told: str, tmp_path: Path) -> None:
    make(tmp_path / "board.toml")
    assert refusal(tmp_path / "board.toml") == told
