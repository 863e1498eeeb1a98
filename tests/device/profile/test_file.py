"""One file of a profile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perfsuite.device.profile.file import ProfileFile
from perfsuite.errors import DeviceError


def file_at(path: Path) -> ProfileFile:
    """A profile's file in a folder of one's own."""
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
    """Its tables come as TOML has them, with the line ends of any system."""
    path = tmp_path / "board.toml"
    path.write_bytes(b'description = "a board"\r\n[reach]\r\nport = 22\r\n')
    assert file_at(path).tables() == {"description": "a board", "reach": {"port": 22}}


def test_a_draft_is_read_in_the_place_of_the_file(tmp_path: Path) -> None:
    """What is not written yet can be looked at as if it were."""
    file = ProfileFile(name="x", place=tmp_path / "x", where="x", folder=tmp_path, draft=b"description = 'new'")
    assert file.tables() == {"description": "new"}


@pytest.mark.parametrize(
    ("content", "line"),
    [(b"\nreach = [\n", 3), (b"a = 1\na = 2\n", 2), (b"\n\nthis is no TOML", 3)],
    ids=["unclosed", "twice", "prose"],
)
def test_broken_toml_is_told_with_its_line(content: bytes, line: int, tmp_path: Path) -> None:
    """The line is where the parser gave up, or the end of the file, which it says so."""
    path = tmp_path / "board.toml"
    path.write_bytes(content)
    told = refusal(path)
    assert told.startswith("is no TOML (")
    assert f"line {line}" in told or "end of document" in told


def test_a_number_without_an_end_is_no_toml(tmp_path: Path) -> None:
    """More digits than Python converts are told as any other mistake."""
    path = tmp_path / "board.toml"
    path.write_text("memory_bytes = " + "1" * 5000)
    assert refusal(path).startswith("is no TOML (")


def test_lists_without_an_end_are_no_profile(tmp_path: Path) -> None:
    """Nesting deeper than the parser goes is one line, too."""
    path = tmp_path / "board.toml"
    path.write_text("a = " + "[" * 20_000)
    assert refusal(path).startswith(("is no profile (", "is no TOML ("))


def test_another_encoding_is_told_with_its_line(tmp_path: Path) -> None:
    """A file is UTF-8."""
    path = tmp_path / "board.toml"
    path.write_bytes(b'description = "a"\nkind = "gr\xfcn"\n')
    assert refusal(path) == "is not UTF-8 (line 2); save it as UTF-8"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """A folder of a profile's name is told as what it is."""
    (tmp_path / "board.toml").mkdir()
    assert refusal(tmp_path / "board.toml") == "is a folder, expected a profile's file"


def test_a_link_to_nowhere_is_told(tmp_path: Path) -> None:
    """A link whose file is gone is not passed over in silence."""
    (tmp_path / "board.toml").symlink_to(tmp_path / "gone.toml")
    assert refusal(tmp_path / "board.toml") == "is no file, or a link to none; expected a profile's file"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """A pipe of a profile's name would keep a reader for ever."""
    os.mkfifo(tmp_path / "board.toml")
    assert refusal(tmp_path / "board.toml") == "is no file, or a link to none; expected a profile's file"


def test_a_file_without_an_end_is_no_profile(tmp_path: Path) -> None:
    """What is longer than a megabyte is not read to its end."""
    path = tmp_path / "board.toml"
    path.write_bytes(b"#" * ((1 << 20) + 1))
    assert refusal(path) == "has more than 1,048,576 bytes, which is no profile"


class Unreadable:
    """A file that is there and that the system refuses to open."""

    def is_dir(self) -> bool:
        """No."""
        return False

    def is_file(self) -> bool:
        """Yes."""
        return True

    def open(self, _: str) -> None:
        """Refuse."""
        raise PermissionError(13, "Permission denied")


def test_a_file_that_cannot_be_read_is_told() -> None:
    """The system's own words are in the line."""
    file = ProfileFile(name="x", place=Unreadable(), where="devices/x.toml", folder=None)  # type: ignore[arg-type]
    with pytest.raises(DeviceError, match=r"^devices/x\.toml: cannot be read \(Permission denied\)$"):
        file.tables()
