"""How the lock of a machine is placed and removed, whole at any time.

A lock is a folder with two files, ``owner.json`` and ``beat``. It is filled under another name and then renamed: that
succeeds only where no lock is, so that two who try at once are told apart by the kernel, and a reader never sees half
of one. Hard links would do as well, but Android forbids them. To remove a lock, a process takes the kernel's lock
(flock) of the very folder and has seen that it still has the name, so that nobody removes a lock that somebody else has
taken meanwhile. Other accounts may read the files and not open the folder, so that none can keep its owner from
removing it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from perfsuite.device.lock.reading import BEAT_NAME, LOCK_NAME, OWNER_NAME, has_name, lock_behind
from perfsuite.device.lock.state import LockOwner, LockState
from perfsuite.errors import DeviceError, LockedError

#: A beat is as long as every other, and says its number twice, so that it can be written in place and read whole.
_BEAT_FORMAT = "{0:020d} {0:020d}\n"

#: Longest wait for somebody who is removing the same lock.
_REMOVAL_LIMIT_S = 5.0

#: A lock is placed in milliseconds; what was begun longer ago was left by a process that was killed.
_DRAFT_LIMIT_S = 60.0

#: Said by the system where somebody else has placed a lock, or has swept a draft away that lay too long.
_FASTER = {errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedLock:
    """A lock of this process's own, held open."""

    folder: Path
    #: The lock's folder, and its file with the heartbeat.
    handle: int
    beat_handle: int

    def beat(self) -> None:
        """Note that the holder is alive; raises OSError."""
        os.pwrite(self.beat_handle, _beat_line(), 0)

    def is_there(self) -> bool:
        """Say whether the lock still has its name: whether nobody has broken it."""
        return has_name(self.folder, self.handle)

    def remove(self) -> None:
        """Remove it, unless somebody else has done so."""
        try:
            with suppress(OSError, LockedError), _flocked(self.handle):
                if self.is_there():
                    _remove(self.folder)
        finally:
            os.close(self.beat_handle)
            os.close(self.handle)


def place_lock(folder: Path, owner: LockOwner) -> PlacedLock | None:
    """Place a lock in a folder; None where there is one. Raises OSError where the folder does not take it.

    Whatever breaks it off, no draft stays; a lock may, which says that it is this owner's.
    """
    _sweep(folder)
    draft = _aside(folder)
    handles: list[int] = []
    try:
        _fill(draft, owner, handles)
        os.rename(draft, folder / LOCK_NAME)
        return PlacedLock(folder=folder, handle=handles[0], beat_handle=handles[1])
    except BaseException as error:
        shutil.rmtree(draft, ignore_errors=True)
        for each in handles:
            with suppress(OSError):
                os.close(each)
        # A draft that is gone was taken for one that was left behind: the clock may have been set meanwhile.
        if isinstance(error, OSError) and (error.errno in _FASTER or (error.errno == errno.ENOENT and folder.is_dir())):
            return None
        raise


def remove_lock(folder: Path, seen: LockState) -> bool:
    """Remove the lock that was seen; False where it is not that one any more.

    Raises LockedError: it belongs to another account, or somebody is at it all the time; DeviceError: what has the
    lock's name is not a lock.
    """
    path = folder / LOCK_NAME
    try:
        with _opened(path) as handle, _flocked(handle):
            if not has_name(folder, handle) or lock_behind(folder, handle).owner != seen.owner:
                return False
            _remove(folder)
            return True
    except FileNotFoundError:
        return False
    except PermissionError as error:
        told = f"{path}: belongs to the account {seen.account} of the device"
        raise LockedError(f"{told}; remove it as that account, or as root") from error
    except OSError as error:
        raise DeviceError(f"{path}: cannot be removed ({error.strerror}); remove it") from error


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield handle
    finally:
        os.close(handle)


def _fill(draft: Path, owner: LockOwner, handles: list[int]) -> None:
    """Make a lock under another name; its folder and its file with the heartbeat are left open."""
    os.mkdir(draft, 0o700)
    handles.append(os.open(draft, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW))
    for name, content in ((BEAT_NAME, _beat_line()), (OWNER_NAME, json.dumps(owner.to_plain()).encode())):
        handles.append(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644, dir_fd=handles[0]))
        os.fchmod(handles[-1], 0o644)
        if os.write(handles[-1], content) != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.close(handles.pop())
    os.fchmod(handles[0], 0o711)  # nosec B103  # others read its files by name, and list and change nothing


def _sweep(folder: Path) -> None:
    """Remove what processes of this account were killed over."""
    left = []
    with suppress(OSError), os.scandir(folder) as found:
        left = [each.path for each in found if each.name.startswith(f".{LOCK_NAME}.") and _is_left(each)]
    for each in left:
        shutil.rmtree(each, ignore_errors=True)


def _is_left(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):
        about = entry.stat(follow_symlinks=False)
        is_own = stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid()
        return is_own and time.time() - about.st_mtime > _DRAFT_LIMIT_S
    return False


@contextmanager
def _flocked(handle: int) -> Iterator[None]:
    """Have the kernel's lock of a lock's folder, which whoever removes it must have."""
    until = time.monotonic() + _REMOVAL_LIMIT_S
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > until:
                raise LockedError("somebody else is removing the device's lock and does not end; try again") from None
            time.sleep(0.02)
    try:
        yield
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)


def _remove(folder: Path) -> None:
    """Take the name away at once, then the content."""
    aside = _aside(folder)
    os.rename(folder / LOCK_NAME, aside)
    shutil.rmtree(aside, ignore_errors=True)


def _aside(folder: Path) -> Path:
    """Return a name that nobody has."""
    return folder / f".{LOCK_NAME}.{os.getpid()}-{secrets.token_hex(8)}"


def _beat_line() -> bytes:
    return _BEAT_FORMAT.format(time.monotonic_ns()).encode()
