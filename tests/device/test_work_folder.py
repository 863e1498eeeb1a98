"""Folders of a run: what is left behind goes, and nothing else does."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perfsuite.device import work_folder as module
from perfsuite.device.work_folder import OLD_S, new_work_folder, prefix, sweep, work_folder

#: Makes a folder with a file in it, says where, and waits.
_HOLDER = """
import sys, time
from perfsuite.device.work_folder import new_work_folder
made = new_work_folder(sys.argv[1])
(made.path / "plan.json").write_text("{}")
print(made.path, flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Let each test begin as a process does, which has not swept yet."""
    module.sweep_once.cache_clear()
    yield
    module.sweep_once.cache_clear()


@contextmanager
def holder(within: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    line = [sys.executable, "-c", _HOLDER, str(within)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


def left(within: Path, name: str, *, age_s: float = 0.0) -> Path:
    """Leave a folder as a process that was killed does; of its name the last part has eight characters."""
    start, _, last = name.rpartition("-")
    folder = within / f"{start}-{last:x<8}"
    folder.mkdir()
    (folder / "file").write_text("x")
    os.utime(folder, times=(time.time() - age_s,) * 2)
    return folder


def test_it_is_gone_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def interrupted() -> None:
        with work_folder() as folder:
            assert folder.stat().st_mode & 0o777 == 0o700
            (folder / "sub").mkdir()
            (folder / "sub" / "file").write_text("x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert names(tmp_path) == set()


def test_what_a_killed_process_left_goes_when_the_next_begins(tmp_path: Path) -> None:
    """While it lives its folder stays, also where it is stopped."""
    with holder(tmp_path) as (process, folder):
        sweep(str(tmp_path))
        assert names(folder) == {"plan.json"}
        process.kill()
        process.wait()
        made = new_work_folder(str(tmp_path))
        assert names(tmp_path) == {made.path.name}
        made.remove()
        made.remove()
    assert names(tmp_path) == set()


@pytest.mark.parametrize("name", ["perfsuite.git", "perfsuite.old", ".perfsuite-work", ".perfsuite-work-0-old"])
def test_what_somebody_has_made_stays(tmp_path: Path, name: str) -> None:
    """A folder of a like name is nobody's leftover, however old it is, with a file in it or without."""
    mine = tmp_path / name
    mine.mkdir()
    (mine / "file").write_text("mine")
    (tmp_path / f"{name}.empty").mkdir()
    for each in (mine, tmp_path / f"{name}.empty"):
        os.utime(each, times=(0, 0))
    new_work_folder(str(tmp_path)).remove()
    assert names(tmp_path) == {name, f"{name}.empty"}
    assert names(mine) == {"file"}


def test_what_another_machine_has_made_stays_until_it_is_old(tmp_path: Path) -> None:
    """On some shared file systems each machine has locks of its own; earlier versions did not name the machine."""
    anybodys = prefix()[: -len("123456-")]
    kept = {left(tmp_path, f"{anybodys}abcdef-new"), left(tmp_path, f"{anybodys}new")}
    left(tmp_path, f"{anybodys}abcdef-old", age_s=2 * OLD_S)
    left(tmp_path, f"{anybodys}old", age_s=2 * OLD_S)
    sweep(str(tmp_path))
    assert set(tmp_path.iterdir()) == kept


def test_only_own_folders_of_that_name_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link is not followed and stays, as do files, other names, and what belongs to another account."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "own").write_text("mine")
    (tmp_path / f"{prefix()}linklink").symlink_to(elsewhere)
    (tmp_path / f"{prefix()}filefile").write_text("x")
    kept = names(tmp_path)
    folder = left(tmp_path, f"{prefix()}left")
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        folder = folder.rename(tmp_path / f"{prefix()}leftxxxx")
        sweep(str(tmp_path))
        assert names(tmp_path) == {*kept, folder.name}
    folder.rename(tmp_path / f"{prefix()}leftxxxx")
    sweep(str(tmp_path))
    assert names(tmp_path) == kept
    assert names(elsewhere) == {"own"}


def test_a_folder_survives_its_birth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that a sweep takes between its making and its locking is made again."""
    plain_make, made_paths = tempfile.mkdtemp, list[str]()

    def disturbed(**how: str) -> str:
        made_paths.append(plain_make(**how))
        if len(made_paths) == 1:
            sweep(str(tmp_path))
        return made_paths[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", disturbed)
    made = new_work_folder(str(tmp_path))
    assert (len(made_paths), str(made.path)) == (2, made_paths[-1])
    assert made.path.is_dir()


#: Makes and removes folders for a while, and sweeps all the time; fails where one vanishes in between.
_CONTENDER = """
import sys, time
from perfsuite.device.work_folder import new_work_folder, sweep
until = time.monotonic() + 1.0
while time.monotonic() < until:
    made = new_work_folder(sys.argv[1])
    (made.path / "record").write_text("x")
    sweep(sys.argv[1])
    assert (made.path / "record").read_text() == "x"
    made.remove()
"""


def test_processes_that_sweep_at_once_leave_each_other_alone(tmp_path: Path) -> None:
    line = [sys.executable, "-c", _CONTENDER, str(tmp_path)]
    started = [subprocess.Popen(line, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    told = [process.communicate(timeout=60)[1] for process in started]
    assert [process.returncode for process in started] == [0] * 4, told
    assert names(tmp_path) == set()


def test_a_file_system_without_locks_is_not_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("fcntl.flock", refused)
    other = left(tmp_path, f"{prefix()}other")
    made = new_work_folder(str(tmp_path))
    assert made.handle is None
    assert names(made.path) == set()
    assert names(tmp_path) == {other.name, made.path.name}
    made.remove()
