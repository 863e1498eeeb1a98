"""What is this account's own: the cache, the files by which processes lock a folder, and this Python.

Where others can write, a name that can be foreseen may be a link that somebody else has laid, or their file. So no link
is followed, and what another account owns or can write to is refused.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
import time
from pathlib import Path

from perfsuite.errors import PerfsuiteError

#: Whether Python has -P; and what does the same in one that has not.
_HAS_SAFE_PATH = sys.version_info >= (3, 11)
_SAFELY = """import runpy, sys
sys.path.remove("")
sys.argv[:3] = ["-c"]
runpy.run_module(WHAT, run_name="__main__", alter_sys=True) if FLAG == "-m" else exec(WHAT)
"""


def own_python(flag: str, what: str, *words: str) -> tuple[str, ...]:
    """Return what starts a module (``-m``) or a text (``-c``) with this Python, and nothing of the current folder."""
    if _HAS_SAFE_PATH:
        return (sys.executable, "-P", flag, what, *words)
    return (sys.executable, "-c", f"FLAG, WHAT = {flag!r}, {what!r}\n{_SAFELY}", flag, what, *words)


def user_cache() -> Path:
    """Return the suite's folder in the cache of the user, which holds what the suite compiles and then runs.

    Raises PerfsuiteError: another account owns it or can write to it.
    """
    import platformdirs  # most commands do not need it

    folder = Path(platformdirs.user_cache_dir("perfsuite"))
    refuse_foreign(folder, PerfsuiteError)
    return folder


def refuse_foreign(path: Path, error_type: type[PerfsuiteError], named_by: str = "XDG_CACHE_HOME") -> None:
    """Refuse a file or folder, or a link to one, that accounts other than this one and root own or can write to.

    What is not there passes; `named_by` is what names another. Raises PerfsuiteError: of `error_type`.
    """
    for look in (os.lstat, os.stat):
        try:
            about = look(path)
        except OSError:
            return
        if about.st_uid not in (os.geteuid(), 0):
            raise error_type(
                f"{path}: belongs to the account {about.st_uid}, expected your own ({os.geteuid()}); let "
                f"{named_by} name a folder of yours, or remove it if nobody needs it"
            )
        is_shared = about.st_mode & stat.S_IWGRP and about.st_gid != os.getegid()
        if not stat.S_ISLNK(about.st_mode) and (about.st_mode & stat.S_IWOTH or is_shared):
            raise error_type(
                f"{path}: others can write there (mode {stat.S_IMODE(about.st_mode):04o}), and you would use what "
                "they put there; empty it, and run: chmod go-w on it"
            )


def open_lock(path: Path, error_type: type[PerfsuiteError]) -> int:
    """Open the file by which processes lock a folder, made where there is none; return its handle.

    Raises PerfsuiteError: of `error_type`: it is a link or no plain file, or cannot be opened.
    """
    try:
        # a pipe of this name is opened without waiting for whoever reads it
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        handle = os.open(path, flags, 0o644)
    except OSError as error:
        told = "is a link" if error.errno == errno.ELOOP else f"cannot be opened ({error.strerror})"
        raise error_type(f"{path}: {told}, expected a file of perfsuite's own; remove it") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise error_type(f"{path}: is not a file, expected one of perfsuite's own; remove it")
    return handle


_TRY_S = 0.02


def is_locked(handle: int, limit_s: float = 0.0) -> bool:
    """Lock an open file or folder, once nobody else has it; False where somebody has it for longer than the limit.

    Where the file system knows no locks, nobody has any.
    """
    until_s = time.monotonic() + limit_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until_s:
                return False
            time.sleep(_TRY_S)
        except OSError:
            return True
        else:
            return True
