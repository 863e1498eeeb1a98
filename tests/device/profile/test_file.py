"""One file of a profile."""

from __future__ import annotations

import os
import re
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


def test_a_draft_is_read_in_the_place_of_the_file(tmp_path: Path) -> None:
    file = ProfileFile(name="x", place=tmp_path / "x", where="x", folder=tmp_path, draft=b"description = 'new'")
    assert file.tables() == {"description": "new"}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"\nreach = [\n", r"is not TOML \(.*(line 3|end of document)"),
        (b"a = 1\na = 2\n", r"is not TOML \(.*line 2"),
        (b"\n\nthis is not TOML", r"is not TOML \(.*line 3"),
        (b"memory_bytes = " + b"1" * 5000, r"is not TOML \("),
        (b"a = " + b"[" * 20_000, r"is not TOML \("),
        (b'description = "a"\nkind = "gr\xfcn"\n', r"is not TOML \('utf-8' codec can't decode byte 0xfc in position"),
        (b"#" * ((1 << 20) + 1), "has more than 1,048,576 bytes, which is not a profile"),
    ],
    ids=["unclosed", "twice", "prose", "a number without an end", "lists without an end", "encoding", "too long"],
)
def test_what_is_no_toml_is_told_with_where_it_breaks(content: bytes, told: str, tmp_path: Path) -> None:
    """The line is where the parser gave up, or the end of the file, which it says so."""
    (tmp_path / "board.toml").write_bytes(content)
    assert re.match(told, refusal(tmp_path / "board.toml"))


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


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "board.toml").touch()
    monkeypatch.setattr(Path, "open", refuse)
    assert refusal(tmp_path / "board.toml") == "cannot be read (Permission denied)"
