"""Folders for what a run writes meanwhile, which go with the process that made them, however it ends.

They lie where everybody may write, so nothing is followed, and only what belongs to this account is touched. Each has a
name that nobody gives by hand. It is locked (flock) by its process for as long as that lives, and a file in it says
since which start of which machine: some file systems that machines share keep such locks on each machine alone. The
kernel gives the lock up for a process that is killed, in whatever namespace it was. So a folder that was marked on this
machine and can be locked was left behind, and goes.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from perfsuite.device.process_start import boot_id
from perfsuite.records.whole_file import place_folder, sync_folder

#: The file in each that says where it was made; it comes after the lock, and goes last.
MARK = ".perfsuite-work"

#: From then on nobody uses what only its age can tell of, s: a week.
OLD_S = 7 * 86400.0

#: Before it is locked a folder may be taken from under its process; then another is made.
_N_TRIES = 20


@dataclass(slots=True, kw_only=True)
class WorkFolder:
    """A folder of this process's own."""

    path: Path
    #: By which it is locked; None where its file system locks no folders, so that nobody sweeps it either.
    handle: int | None

    def remove(self) -> None:
        """Remove it with all that is in it, twice as once; what cannot be removed is left for later sweeps."""
        _remove_whole(self.path)
        handle, self.handle = self.handle, None
        if handle is not None:
            os.close(handle)


@contextmanager
def work_folder(within: Path | None = None) -> Iterator[Path]:
    """Give a folder of this process's own, with its mark alone in it, which is gone at the end.

    It is in the system's folder for such, or in another one, such as beside what it becomes.

    Raises OSError where none can be made.
    """
    made = new_work_folder(str(within or tempfile.gettempdir()))
    try:
        yield made.path
    finally:
        made.remove()


def replace_folder(draft: Path | None, to: Path) -> None:
    """Let a folder take the place of another one, or of nothing; without one, that place is empty then.

    What was there goes first, in one step, so that it is never there in part; raises OSError.
    """
    if os.path.lexists(to):
        with work_folder(to.parent) as work:
            to.rename(work / "replaced")
    if draft is not None:
        place_folder(draft, to)


def new_work_folder(within: str) -> WorkFolder:
    """Make a folder below another one, where those of processes that were killed are removed first; raises OSError."""
    sweep_once(within)
    for _ in range(_N_TRIES):
        path = Path(tempfile.mkdtemp(prefix=prefix(), dir=within))
        with suppress(FileNotFoundError, BlockingIOError):
            made = WorkFolder(path=path, handle=_locked(path))
            if made.handle is not None:
                _mark(path)
            return made
    raise FileNotFoundError(0, "each new folder is removed at once", within)


def sweep(within: str) -> None:
    """Remove the folders of this account whose processes are gone; what cannot be looked at stays.

    What has no mark, or one of another machine, stays too. Of this machine before its last start, and empty without a
    mark, they go once they are old.
    """
    name = re.compile(re.escape(prefix()) + "[a-z0-9_]{8}")  # the characters of `tempfile`
    found: list[Path] = []
    with suppress(OSError), os.scandir(within) as entries:
        found = [Path(each.path) for each in entries if name.fullmatch(each.name) and _is_own(each)]
    for path in found:
        with suppress(OSError):
            if _can_be_left(path) and (handle := _locked(path)) is not None:
                WorkFolder(path=path, handle=handle).remove()


def prefix() -> str:
    """Return how the names of this account's folders begin; eight characters follow."""
    return f".perfsuite-work-{os.geteuid()}-"


@cache
def sweep_once(within: str) -> None:
    """Sweep where a process makes a folder, or might: a look at each name costs little, and need not be paid again."""
    sweep(within)


def _is_own(entry: os.DirEntry[str]) -> bool:
    try:
        about = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid()


def _mark(path: Path) -> None:
    """Say where a folder was made; without it, as on a full disk, nobody takes the folder for one that was left."""
    try:
        with (path / MARK).open("w", encoding="utf-8") as mark:
            mark.write(f"{boot_id()}\n{platform.node()}\n")
            mark.flush()
            os.fsync(mark.fileno())
        sync_folder(path)  # after a power cut what is in the folder would otherwise stay for ever
    except OSError:
        with suppress(OSError):
            (path / MARK).unlink()


def _can_be_left(path: Path) -> bool:
    """Whether a folder's lock tells that it was left behind."""
    try:
        boot, host = (path / MARK).read_text("utf-8").splitlines()
    except (FileNotFoundError, ValueError):  # none, or one that was cut off
        return _is_old(path) and not {*os.listdir(path)} - {MARK}
    return (boot != "" and boot == boot_id()) or (host == platform.node() and _is_old(path))


def _is_old(path: Path) -> bool:
    return time.time() - path.lstat().st_mtime > OLD_S


def _remove_whole(path: Path) -> None:
    """Remove a folder, its mark last, so that one whose removal was broken off is known for what it is."""
    with suppress(OSError):
        for each in os.listdir(path):
            if each != MARK:
                remove_path(path / each)
        if os.listdir(path) == [MARK]:
            (path / MARK).unlink()
        path.rmdir()


def remove_path(path: Path) -> None:
    """Remove a file, or a folder with all that is in it, and no folder that a link leads to; nothing raises."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _locked(path: Path) -> int | None:
    """Lock a folder, and return the handle; None where its file system has no such locks.

    Raises BlockingIOError: its process is alive; OSError: it is gone, or another one by now, or no folder of this
    account.
    """
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        about = os.fstat(handle)
        if about.st_uid != os.geteuid() or not os.path.samestat(about, os.lstat(path)):
            raise FileNotFoundError(path)
        return handle
    except (FileNotFoundError, BlockingIOError):
        os.close(handle)
        raise
    except OSError:
        os.close(handle)
        return None
