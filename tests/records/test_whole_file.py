"""Files that are written whole or not at all."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import pytest

from perfsuite.errors import BaselineError
from perfsuite.records.whole_file import (
    plain_name,
    whole_path,
    write_json,
    write_whole,
    write_whole_bytes,
    write_whole_chunks,
)


def test_a_list_of_numbers_is_one_line(tmp_path: Path) -> None:
    """Folders are made, the JSON ends in a newline, samples are one line a case, and infinity is refused."""
    path = tmp_path / "a" / "b.json"
    write_json(path, {"µs": [1, None]}, BaselineError)
    assert json.loads(path.read_text()) == {"µs": [1, None]}
    assert path.read_text().endswith("}\n")
    path = tmp_path / "b.json"
    plain = {"a": [1, -2.5e-30, 3], "b": [], "c": ["[\n1,\n2\n]", [4]], "d": [None, 1]}
    write_json(path, plain, BaselineError)
    assert json.loads(path.read_text()) == plain
    assert ' "a": [1, -2.5e-30, 3],\n "b": [],\n' in path.read_text()
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "c.json", {"x": float("inf")}, BaselineError)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a", "b.json"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "b.json"
    write_json(path, {"old": 1}, BaselineError)

    def failing(out: TextIO) -> None:
        out.write("half")
        raise OSError(28, "No space left on device")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    one_line = rf"^{path}: cannot be written \(No space left on device\)$"
    with pytest.raises(BaselineError, match=one_line):
        write_whole(path, failing, BaselineError)
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(BaselineError, match=one_line):
        write_json(path, {"new": 2}, BaselineError)
    assert (json.loads(path.read_text()), [entry.name for entry in tmp_path.iterdir()]) == ({"old": 1}, ["b.json"])


def test_a_file_and_its_folder_are_made(tmp_path: Path) -> None:
    """What is written is there as it is, readable by all; a folder in its place is one line."""
    path = tmp_path / "new" / "file.md"
    write_whole(path, lambda out: print("µ", file=out), BaselineError)
    assert (path.read_text("utf-8"), path.stat().st_mode & 0o777) == ("µ\n", 0o644)
    assert [each.name for each in path.parent.iterdir()] == ["file.md"]
    path = tmp_path / "new" / "file.png"
    write_whole_bytes(path, b"\x89PNG\r\n\x00", BaselineError)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"\x89PNG\r\n\x00", 0o644)
    with pytest.raises(BaselineError, match=rf"^{path.parent}: cannot be written \(Is a directory\)$"):
        write_whole_bytes(path.parent, b"", BaselineError)
    assert [each.name for each in tmp_path.iterdir()] == ["new"]


def test_chunks_are_written_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    write_whole_chunks(path, (bytes([each]) * 2 for each in range(3)), BaselineError)
    assert path.read_bytes() == b"\0\0\1\1\2\2"

    def failing() -> Iterator[bytes]:
        yield b"half"
        raise OSError(28, "No space left on device")

    with pytest.raises(BaselineError, match=rf"^{path}: cannot be written \(No space left on device\)$"):
        write_whole_chunks(path, failing(), BaselineError)
    assert (path.read_bytes(), [each.name for each in tmp_path.iterdir()]) == (b"\0\0\1\1\2\2", ["file.bin"])


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    """What a link leads to is written; what is no file is never replaced by one."""
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "link.md"
    link.symlink_to("elsewhere/file.md")
    write_whole(link, lambda out: print("a", file=out), BaselineError)
    assert link.is_symlink()
    assert (tmp_path / "elsewhere" / "file.md").read_text() == "a\n"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(BaselineError, match=rf"^{pipe}: is not a file but a device or a pipe; name a file,"):
        write_whole(pipe, lambda out: print("a", file=out), BaselineError)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["elsewhere", "link.md", "pipe"]


_WRITER = """
import os, sys
from pathlib import Path
from perfsuite.errors import BaselineError
from perfsuite.records.whole_file import write_whole

def fill(out):
    out.write("half")
    out.flush()
    os.kill(os.getpid(), 9)

write_whole(Path(sys.argv[1]), fill, BaselineError)
"""


def test_a_kill_leaves_the_old_file_alone(tmp_path: Path) -> None:
    """Half a file goes with the next that is written."""
    path = tmp_path / "b.json"
    path.write_text("old")
    done = subprocess.run([sys.executable, "-c", _WRITER, path], check=False, timeout=60)
    assert (done.returncode, path.read_text()) == (-9, "old")
    assert len([each for each in tmp_path.iterdir() if each != path]) == 1
    write_whole(path, lambda out: out.write("new"), BaselineError)
    assert [each.name for each in tmp_path.iterdir()] == ["b.json"]


def test_what_is_written_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First the content, then the name, then the folder: a power cut leaves the old file or the new one."""
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace

    def synced(handle: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "content")
        fsync(handle)

    def replaced(*paths: Any) -> None:
        steps.append("name")
        replace(*paths)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    write_json(tmp_path / "b.json", {"new": 2}, BaselineError)
    assert steps == ["content", "name", "folder"]


def test_what_another_process_is_writing_stays(tmp_path: Path) -> None:
    """Neither a file that its writer holds nor anything that is no file is taken for one that a kill left."""
    os.mkfifo(tmp_path / ".pipe.perfsuite-part")

    def fill(out: TextIO) -> None:
        (held,) = (each for each in os.listdir(tmp_path) if each.startswith(".") and each != ".pipe.perfsuite-part")
        write_json(tmp_path / "other.json", {}, BaselineError)
        assert held in os.listdir(tmp_path)

    write_whole(tmp_path / "b.json", fill, BaselineError)
    assert sorted(os.listdir(tmp_path)) == [".pipe.perfsuite-part", "b.json", "other.json"]


def test_a_writer_of_its_own_gets_a_path(tmp_path: Path) -> None:
    """What opens files by itself writes whole files, too, and one that fails leaves the old one."""
    path = tmp_path / "new" / "b.gguf"
    with whole_path(path, BaselineError) as partial:
        partial.write_text("a")
        assert not path.exists()

    def fail() -> None:
        with whole_path(path, BaselineError) as partial:
            partial.write_text("half")
            raise OSError(28, "No space left on device")

    with pytest.raises(BaselineError, match=rf"^{path}: cannot be written \(No space left on device\)$"):
        fail()
    assert (path.read_text(), os.listdir(path.parent)) == ("a", ["b.gguf"])


@pytest.mark.parametrize("name", ["host", "smollm2-135m-q8_0", "qwen1.5-moe-a2.7b-l2-q4_k", "_v..2", "9" * 200])
def test_a_name_that_is_one_part_of_a_path_is_taken(name: str) -> None:
    assert plain_name(name, "device", BaselineError) == name


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "/x", "a/b", "a\\b", "a\0", "a\n", "-x", ".x", "9" * 201])
def test_a_name_that_leads_elsewhere_is_one_line(name: str) -> None:
    with pytest.raises(BaselineError, match=r"^run\.json: device is '.*, expected a plain name: letters, ") as caught:
        plain_name(name, "run.json: device", BaselineError)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200
