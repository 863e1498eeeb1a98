"""Folders of a run: what is left behind goes, and nothing else does."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perfsuite.device import work_folder as module
from perfsuite.device.process_start import boot_id
from perfsuite.device.work_folder import MARK, OLD_S, new_work_folder, prefix, sweep, work_folder

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


def left(within: Path, name: str, mark: str | None = "", *, age_s: float = 0.0, files: tuple[str, ...] = ()) -> Path:
    """Leave a folder as a process that was killed does; "" is the mark of this machine, None is without one."""
    folder = within / f"{prefix()}{name:x<8}"
    folder.mkdir()
    for each in files:
        (folder / each).write_text("x")
    if mark is not None:
        (folder / MARK).write_text(mark or f"{boot_id()}\n{platform.node()}\n")
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
        assert names(folder) == {"plan.json", MARK}
        process.kill()
        process.wait()
        made = new_work_folder(str(tmp_path))
        assert names(tmp_path) == {made.path.name}
        made.remove()
        made.remove()
    assert names(tmp_path) == set()


@pytest.mark.parametrize("name", ["perfsuite.git", "perfsuite.old", ".perfsuite-work", ".perfsuite-work-0-old"])
def test_what_somebody_has_made_stays(tmp_path: Path, name: str) -> None:
    """A folder of a like name is nobody's leftover, however old it is, with a file in it or without, marked or not."""
    mine = tmp_path / name
    mine.mkdir()
    (mine / "file").write_text("mine")
    (mine / MARK).write_text(f"{boot_id()}\n{platform.node()}\n")
    (tmp_path / f"{name}.empty").mkdir()
    for each in (mine, tmp_path / f"{name}.empty"):
        os.utime(each, times=(0, 0))
    new_work_folder(str(tmp_path)).remove()
    assert names(tmp_path) == {name, f"{name}.empty"}
    assert names(mine) == {"file", MARK}


def test_without_a_mark_only_what_is_empty_and_old_goes(tmp_path: Path) -> None:
    """Its process may have been about to mark it, or may have found the disk full."""
    kept = {left(tmp_path, "new", None), left(tmp_path, "used", None, age_s=2 * OLD_S, files=("file",))}
    left(tmp_path, "old", None, age_s=2 * OLD_S)
    sweep(str(tmp_path))
    assert set(tmp_path.iterdir()) == kept


def test_what_another_machine_has_marked_stays(tmp_path: Path) -> None:
    """On some shared file systems each machine has locks of its own, so that this one cannot see whether it is used.

    Of this machine before its last start it goes, once it is old: another one may have the same name.
    """
    here = platform.node()
    kept = {
        left(tmp_path, "other", "another-boot\nanother-host\n", age_s=2 * OLD_S),
        left(tmp_path, "boot", f"another-boot\n{here}\n"),
        left(tmp_path, "none", f"\nx{here}\n", age_s=2 * OLD_S),
        left(tmp_path, "cut", "another", age_s=2 * OLD_S, files=("file",)),
        left(tmp_path, "new", "another"),
    }
    left(tmp_path, "gone", "another", age_s=2 * OLD_S)  # with a mark that was cut off, and nothing else
    left(tmp_path, "here", f"another-boot\n{here}\n", age_s=2 * OLD_S, files=("file",))
    left(tmp_path, "inside", f"{boot_id()}\nthe-name-of-a-container\n", files=("file",))
    sweep(str(tmp_path))
    assert set(tmp_path.iterdir()) == kept


def test_a_removal_that_was_broken_off_is_done_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mark goes last, so that what is still there is known for what it is."""
    made = new_work_folder(str(tmp_path))
    (made.path / "sub").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", lambda *_, **__: None)
        made.remove()
    assert names(made.path) == {"sub", MARK}
    sweep(str(tmp_path))
    assert names(tmp_path) == set()


def test_a_folder_can_be_had_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no mark then, so that nobody sweeps it, and goes with its process."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        made = new_work_folder(str(tmp_path))
    assert names(made.path) == set()
    made.remove()
    assert names(tmp_path) == set()


def test_only_own_folders_of_that_name_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link is not followed and stays, as do files, other names, and what belongs to another account."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "own").write_text("mine")
    (tmp_path / f"{prefix()}linklink").symlink_to(elsewhere)
    (tmp_path / f"{prefix()}filefile").write_text("x")
    kept = names(tmp_path)
    folder = left(tmp_path, "left")
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        folder = folder.rename(tmp_path / f"{prefix()}leftxxxx")
        sweep(str(tmp_path))
        assert names(tmp_path) == {*kept, folder.name}
    folder.rename(tmp_path / f"{prefix()}leftxxxx")
    sweep(str(tmp_path))
    assert names(tmp_path) == kept
    assert names(elsewhere) == {"own"}


@pytest.mark.parametrize("is_taken", [False, True])
def test_a_folder_survives_its_birth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_taken: bool) -> None:
    """A sweep between its making and its locking leaves it, which has no mark yet; one that is taken is made again."""
    plain_make, made_paths = tempfile.mkdtemp, list[str]()

    def disturbed(**how: str) -> str:
        made_paths.append(plain_make(**how))
        if not is_taken:
            sweep(str(tmp_path))
        elif len(made_paths) == 1:
            os.rmdir(made_paths[0])
        return made_paths[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", disturbed)
    made = new_work_folder(str(tmp_path))
    assert (len(made_paths), str(made.path)) == (1 + is_taken, made_paths[-1])
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
    other = left(tmp_path, "other")
    made = new_work_folder(str(tmp_path))
    assert made.handle is None
    assert names(made.path) == set()
    assert names(tmp_path) == {other.name, made.path.name}
    made.remove()
