"""Folders for what a run writes meanwhile, which go with the process that made them, however it ends.

Each is locked (flock) by its process for as long as that lives, and the kernel gives the lock up for one that is
killed, in whatever container it was. So a folder that can be locked was left behind, and goes. Some file systems that
machines share keep such locks on each machine alone: a folder is named for its machine, and another one's goes only
once it is old. They lie where everybody may write: no link is followed, and what is another account's stays.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from perfsuite.records.whole_file import place_folder

#: From then on nobody uses what another machine has made, s: a week.
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
        shutil.rmtree(self.path, ignore_errors=True)
        handle, self.handle = self.handle, None
        if handle is not None:
            os.close(handle)


@contextmanager
def work_folder(within: Path | None = None) -> Iterator[Path]:
    """Give an empty folder of this process's own, which is gone at the end.

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
            return WorkFolder(path=path, handle=_locked(path))
    raise FileNotFoundError(0, "each new folder is removed at once", within)


def sweep(within: str) -> None:
    """Remove the folders of this account whose processes are gone; what cannot be looked at stays."""
    name = re.compile(rf"{re.escape(_account())}([0-9a-f]{{6}}-)?[a-z0-9_]{{8}}")  # the characters of `tempfile`
    found: list[Path] = []
    with suppress(OSError):
        found = [Path(within, each) for each in os.listdir(within) if name.fullmatch(each)]
    for path in found:
        with suppress(OSError):
            if (path.name.startswith(prefix()) or _is_old(path)) and (handle := _locked(path)) is not None:
                WorkFolder(path=path, handle=handle).remove()


def prefix() -> str:
    """Return how the names of this account's folders begin on this machine; eight characters follow."""
    return f"{_account()}{hashlib.sha256(platform.node().encode()).hexdigest()[:6]}-"


def _account() -> str:
    return f".perfsuite-work-{os.geteuid()}-"


@cache
def sweep_once(within: str) -> None:
    """Sweep where a process makes a folder, or might: a look at each name costs little, and need not be paid again."""
    sweep(within)


def _is_old(path: Path) -> bool:
    return time.time() - path.lstat().st_mtime > OLD_S


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
