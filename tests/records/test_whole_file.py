"""Files that are written whole or not at all."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import BaselineError
from perfsuite.records.whole_file import write_json, write_whole, write_whole_bytes, write_whole_chunks


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    """Folders are made, and the content is JSON that ends in a newline."""
    path = tmp_path / "a" / "b.json"
    write_json(path, {"µs": [1, None]}, BaselineError)
    assert json.loads(path.read_text()) == {"µs": [1, None]}
    assert path.read_text().endswith("}\n")


def test_a_list_of_numbers_is_one_line(tmp_path: Path) -> None:
    """Samples can be read and reviewed: one line a case, whatever strings look like."""
    path = tmp_path / "b.json"
    plain = {"a": [1, -2.5e-30, 3], "b": [], "c": ["[\n1,\n2\n]", [4]], "d": [None, 1]}
    write_json(path, plain, BaselineError)
    assert json.loads(path.read_text()) == plain
    assert ' "a": [1, -2.5e-30, 3],\n "b": [],\n' in path.read_text()


@given(st.recursive(st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False), st.lists))
def test_any_value_is_read_back(tmp_path_factory: pytest.TempPathFactory, plain: object) -> None:
    """Putting numbers on one line changes no value."""
    path = tmp_path_factory.getbasetemp() / "any.json"
    write_json(path, {"x": plain}, BaselineError)
    assert json.loads(path.read_text()) == {"x": plain}


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the last step fails the old content stays, and nothing else lies beside it."""
    path = tmp_path / "b.json"
    write_json(path, {"old": 1}, BaselineError)

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(BaselineError, match=r"b\.json: cannot be written \(No space left on device\)"):
        write_json(path, {"new": 2}, BaselineError)
    assert json.loads(path.read_text()) == {"old": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["b.json"]


def test_infinity_is_refused(tmp_path: Path) -> None:
    """JSON has no infinity, so none is written."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "c.json", {"x": float("inf")}, BaselineError)
    assert list(tmp_path.iterdir()) == []


def test_a_file_and_its_folder_are_made(tmp_path: Path) -> None:
    """What is written is there, readable by all, with nothing beside it."""
    path = tmp_path / "new" / "file.md"
    write_whole(path, lambda out: print("µ", file=out), BaselineError)
    assert path.read_text("utf-8") == "µ\n"
    assert path.stat().st_mode & 0o777 == 0o644
    assert [each.name for each in path.parent.iterdir()] == ["file.md"]


def test_what_fails_leaves_what_was_there(tmp_path: Path) -> None:
    """Half a file is never seen, and the reason is one line with the path."""
    path = tmp_path / "file.md"
    path.write_text("before")

    def failing(out: TextIO) -> None:
        out.write("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(BaselineError, match=rf"^{path}: cannot be written \(No space left on device\)$"):
        write_whole(path, failing, BaselineError)
    assert path.read_text() == "before"
    assert [each.name for each in tmp_path.iterdir()] == ["file.md"]


def test_bytes_are_written_as_they_are(tmp_path: Path) -> None:
    """Line ends and the null stay, the file is readable by all, and a folder in its place is told in one line."""
    path = tmp_path / "new" / "file.png"
    write_whole_bytes(path, b"\x89PNG\r\n\x00", BaselineError)
    assert path.read_bytes() == b"\x89PNG\r\n\x00"
    assert path.stat().st_mode & 0o777 == 0o644
    with pytest.raises(BaselineError, match=rf"^{path.parent}: cannot be written \(Is a directory\)$"):
        write_whole_bytes(path.parent, b"", BaselineError)
    assert [each.name for each in tmp_path.iterdir()] == ["new"]


def test_chunks_are_written_one_after_the_other(tmp_path: Path) -> None:
    """A file of pieces is whole, and one whose pieces end in an error leaves what was there."""
    path = tmp_path / "file.bin"
    write_whole_chunks(path, (bytes([each]) * 2 for each in range(3)), BaselineError)
    assert path.read_bytes() == b"\0\0\1\1\2\2"

    def failing() -> Iterator[bytes]:
        yield b"half"
        raise OSError(28, "No space left on device")

    with pytest.raises(BaselineError, match=rf"^{path}: cannot be written \(No space left on device\)$"):
        write_whole_chunks(path, failing(), BaselineError)
    assert path.read_bytes() == b"\0\0\1\1\2\2"
    assert [each.name for each in tmp_path.iterdir()] == ["file.bin"]


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    """What a link leads to is written, and the link is one as before."""
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "link.md"
    link.symlink_to("elsewhere/file.md")
    write_whole(link, lambda out: print("a", file=out), BaselineError)
    assert link.is_symlink()
    assert (tmp_path / "elsewhere" / "file.md").read_text() == "a\n"


def test_a_pipe_is_refused_and_stays(tmp_path: Path) -> None:
    """What is no file, such as /dev/stdout or a pipe, is never replaced by one."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(BaselineError, match=rf"^{pipe}: is no file but a device or a pipe; name a file, or redirect"):
        write_whole(pipe, lambda out: print("a", file=out), BaselineError)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]
