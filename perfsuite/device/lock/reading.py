"""Where the lock of a machine lies, and what is read of it.

Folders that everybody may write to are full of other people's links: nothing is followed, and a lock counts only where
both files belong to the owner of their folder.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from perfsuite.device.lock.state import LockOwner, LockState, judged_holder, seconds_since
from perfsuite.errors import DeviceError

#: One name for the machine, whoever runs: users contend with each other.
LOCK_NAME = "perfsuite-device.lock"

OWNER_NAME, BEAT_NAME = "owner.json", "beat"

_MOST_BYTES = 32_768

#: A moment of the clock that a heartbeat can name, ns.
_TOO_LATE_NS = 2**63

#: How often a lock that says nothing is read: it may just have been removed.
_N_READS = 20


def lock_folders() -> tuple[Path, ...]:
    """Return the folders in which the lock of this machine can lie, in the order in which they are tried.

    The first is shared even by services that have a ``/tmp`` of their own. Where there are neither, as in Termux, it is
    the folder for temporary files.
    """
    usual = (Path("/run/lock"), Path("/tmp"))  # nosec B108  # no link in them is followed
    known = tuple(each for each in usual if each.is_dir())
    if any(os.access(each, os.W_OK) for each in known):
        return known
    try:
        return (*known, Path(tempfile.gettempdir()))
    except FileNotFoundError:
        return known


def lock_states(folders: Iterable[Path]) -> Iterator[LockState]:
    """Yield the locks of these folders; raises as `read_lock`."""
    return (state for each in folders if (state := read_lock(each)) is not None)


def read_lock(folder: Path) -> LockState | None:
    """Read the lock of a folder; None where there is none. Raises DeviceError: what has the lock's name is no lock."""
    state = None
    for _ in range(_N_READS):
        with _opened(folder) as handle:
            if handle is None:
                return None
            state = lock_behind(folder, handle)
            if state.owner is not None or has_name(folder, handle):
                break
    return state


@contextmanager
def _opened(folder: Path) -> Iterator[int | None]:
    """Give a handle by which the lock's folder is read; None where there is none."""
    path = folder / LOCK_NAME
    try:
        handle = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise DeviceError(f"{path}: is not a lock of perfsuite's ({error.strerror}); remove it") from error
    try:
        yield handle
    finally:
        os.close(handle)


def lock_behind(folder: Path, handle: int) -> LockState:
    """Read the lock whose folder has been opened."""
    uid = os.fstat(handle).st_uid
    owner, beat_ns = _owner(handle, uid), _beat_ns(handle, uid)
    beat_age_s = seconds_since(beat_ns)
    return LockState(
        path=str(folder / LOCK_NAME),
        owner=owner,
        account=account_name(uid),
        holder=judged_holder(owner, beat_age_s),
        beat_age_s=beat_age_s,
        held_s=seconds_since(owner.began_ns if owner else None),
        uid=uid,
    )


def has_name(folder: Path, handle: int) -> bool:
    """Say whether the folder that has been opened still has the lock's name."""
    try:
        return os.path.samestat(os.lstat(folder / LOCK_NAME), os.fstat(handle))
    except OSError:
        return False


def account_name(uid: int) -> str:
    """Return the name of an account of this machine, or else its number."""
    try:
        import pwd  # only where there is a lock

        return pwd.getpwuid(uid).pw_name
    except (ImportError, KeyError):
        return str(uid)


def _owner(handle: int, uid: int) -> LockOwner | None:
    try:
        plain = json.loads(_content(handle, OWNER_NAME, uid))
        return LockOwner.from_plain(plain) if isinstance(plain, dict) else None
    except (OSError, ValueError, RecursionError):
        return None


def _beat_ns(handle: int, uid: int) -> int | None:
    """Read the last beat; one that is being written is read again."""
    for _ in range(10):
        try:
            first, second = _content(handle, BEAT_NAME, uid).split()
            if first == second:
                return moment_ns if 0 <= (moment_ns := int(first)) < _TOO_LATE_NS else None
        except (OSError, ValueError):
            return None
    return None


def _content(handle: int, name: str, uid: int) -> bytes:
    """Read a small file of a lock. Raises OSError, also for what is no file of the lock's owner."""
    opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=handle)
    try:
        about = os.fstat(opened)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != uid:
            raise PermissionError(errno.EPERM, "is not a file of the lock's owner")
        return os.read(opened, _MOST_BYTES)
    finally:
        os.close(opened)
