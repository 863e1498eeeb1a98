"""One run at a time on a device, by a file on it that whoever measures has locked (flock).

This is for this machine; the program on a board does the same there. The kernel frees the lock with the process,
whatever ended that, and in whatever container it was. Programs that it starts do not inherit the lock: they hold
nothing.

The file says who has the device. It stays, and is empty where a run ended in order; else the next one restores what
that run had changed. All accounts share it, in a folder that everybody may write to: no link is followed, and what it
says is a claim of anybody's. So nothing is restored from a folder, and no process is ended, on its word alone.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import random
import signal
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfsuite.device.end_requests import signals_held_off
from perfsuite.device.lock_owner import UNKNOWN, LockOwner, named_owner
from perfsuite.errors import DeviceError, LockedError, PerfsuiteError
from perfsuite.records.own_files import refuse_foreign

#: One name for the machine, whoever runs: users contend with each other.
LOCK_NAME = "perfsuite.lock"

#: How often a lock that says nothing is read, and one that is free is tried again: somebody may be at it just now.
_N_READS, _READ_S, _N_TRIES, _TRY_S = 20, 0.005, 20, 0.05

#: Time between two looks at a lock that is waited for, and at a process that is asked to end; and how long it is asked.
_LOOK_S, _END_LOOK_S, END_LIMIT_S = 1.0, 0.1, 30.0


@dataclass(kw_only=True)
class HeldLock:
    """A lock that this run has."""

    #: What a user should know of how it was come by.
    notes: tuple[str, ...] = ()
    #: Where killed runs, which had the lock before, have kept what must be restored.
    left_folders: tuple[Path, ...] = ()
    #: Who has it, where that is another process of this run, so that it is not given back here.
    shared: LockOwner | None = None
    _folders: tuple[Path, ...] = ()
    _handles: dict[int, Path] = field(default_factory=dict)
    _opened: ExitStack = field(default_factory=ExitStack)
    _was_lost: bool = False

    @property
    def is_lost(self) -> bool:
        """Whether somebody else may have had the device: the file was removed, or the process that shares it ended."""
        if self.shared is not None and not self._was_lost:
            with suppress(DeviceError):
                return lock_holder(self._folders) != self.shared
            return True
        return self._was_lost or not all(_is_named(handle, path) for handle, path in self._handles.items())

    def begin(self, handles: dict[int, Path], opened: ExitStack, owner: LockOwner) -> None:
        """Name the owner in what was locked, and note whom a killed run has left there; a full disk hides the name."""
        self._handles, self._opened = handles, opened
        left = {before for handle in handles if (before := named_owner(handle)) is not None}
        for each in left:
            self.left_folders += (own := _own_folder(each))
            kept = "" if own or not each.state_folder else f"; what it has set, if anything, {each.state_folder} names"
            self.notes += (f"the run before this one was killed: {each.text}{kept}",)
        content = json.dumps(owner.beginning_now().to_plain()).encode()
        for handle in handles:
            with suppress(OSError):
                os.ftruncate(handle, 0)
                os.pwrite(handle, content, 0)

    def end(self) -> None:
        """Give the lock back."""
        self._was_lost = self.is_lost
        for handle in self._handles:
            with suppress(OSError):
                os.ftruncate(handle, 0)
            fcntl.flock(handle, fcntl.LOCK_UN)  # also for a child that was just forked
        self._handles = {}
        self._opened.close()


@contextmanager
def hold_lock(
    owner: LockOwner,
    *,
    name: str = "NAME",
    folder: Path | None = None,
    wait_s: float = 0.0,
    tell: Callable[[str], None] | None = None,
) -> Iterator[HeldLock]:
    """Have the lock of this machine for as long as the context lasts.

    Processes of one run (with one `run_id`) share the lock: a run that starts another one under its own `run_id` does
    not wait for itself. The device's `name` is for messages. Without a `folder` the lock is in the one place of this
    machine. Another run that has it is waited for, `wait_s` at most; `tell` then hears once for whom.

    Raises LockedError: somebody else has the device, with who, since when, and what to do; DeviceError: no folder
    takes the lock.
    """
    held, process = HeldLock(_folders=_folders(folder)), os.getpid()
    try:
        _take(held, owner, name, wait_s, tell)
        yield held
    finally:
        if os.getpid() == process:
            with signals_held_off():
                held.end()


def lock_holder(folder: Path | Sequence[Path] | None = None) -> LockOwner | None:
    """Return who has this machine; None where nobody has."""
    for path in (each / LOCK_NAME for each in _folders(folder)):
        try:
            handle = _opened(path, os.O_RDONLY)
        except OSError:
            continue
        try:
            for _ in range(_N_READS):
                if _is_locked(handle, fcntl.LOCK_SH):
                    break
                if (owner := named_owner(handle)) is not None:
                    return owner
                time.sleep(_READ_S)
            else:
                return replace(UNKNOWN, purpose=str(path))
        finally:
            os.close(handle)
    return None


def end_holder(owner: LockOwner, folder: Path | None = None, *, limit_s: float = END_LIMIT_S) -> None:
    """End the process that has the lock, and wait until it has: asked first, so that it restores what it has set.

    Raises LockedError: it is not one of this account's that has the lock's file open, or does not end.
    """
    for number, wait_s in ((signal.SIGTERM, limit_s), (signal.SIGKILL, 1.0)):
        if lock_holder(folder) != owner:
            return
        if not any(_has_open(owner.pid, each / LOCK_NAME) for each in _folders(folder)):
            break
        with suppress(ProcessLookupError, PermissionError):
            os.kill(owner.pid, number)
        until = time.monotonic() + wait_s
        while time.monotonic() < until:
            if lock_holder(folder) != owner:
                return
            time.sleep(_END_LOOK_S)
    raise LockedError(f"held by {owner.text}, which cannot be ended from here; end it as that account, or as root")


def lock_folders() -> tuple[Path, ...]:
    """Return the folders in which the lock of this machine can lie; who has one that he can open there has it in all.

    The first is shared even by services that have a ``/tmp`` of their own. Where neither can be written to, as in
    Termux, it is also the folder for temporary files.
    """
    usual = (Path("/run/lock"), Path("/tmp"))  # nosec B108  # no link in them is followed
    known = tuple(each for each in usual if each.is_dir())
    if any(os.access(each, os.W_OK) for each in known):
        return known
    with suppress(FileNotFoundError):
        return (*known, Path(tempfile.gettempdir()))
    return known


def _take(held: HeldLock, owner: LockOwner, name: str, wait_s: float, tell: Callable[[str], None] | None) -> None:
    until, n_tries = time.monotonic() + wait_s, 0
    while not _is_taken(held, owner):
        other, left_s = lock_holder(held._folders), until - time.monotonic()
        if other is None:  # somebody has given it back meanwhile, or has only looked at it
            n_tries += 1
            if n_tries > _N_TRIES:
                raise LockedError(f"{name}: the device's lock changes hands all the time; try again")
            time.sleep(_TRY_S * random.random())
        elif other.run_id == owner.run_id:
            held.shared = other
            return
        elif left_s <= 0:
            waited = f"; waited {wait_s:.0f} s for it" if wait_s else ""
            todo = f"'perfsuite devices unlock {name} --force' ends it; pytest waits for it with --perf-wait=10m"
            raise LockedError(f"{name}: held by {other.text}; {todo}{waited}")
        else:
            if tell is not None:
                tell(f"{name}: held by {other.text}; waiting for it, {wait_s:.0f} s at most")
                tell = None
            time.sleep(min(left_s, _LOOK_S * random.uniform(0.5, 1.0)))


def _is_taken(held: HeldLock, owner: LockOwner) -> bool:
    """Lock the file in all folders where this account can open or make it; False where somebody else has one of them.

    So those who cannot write to the first folder contend with those who can. One that is refused gives up what it has.
    """
    locked: dict[int, Path] = {}
    refusals = []
    with signals_held_off(), ExitStack() as undo:
        for path in (each / LOCK_NAME for each in held._folders):
            try:
                handle = _opened(path, os.O_RDWR)
                undo.callback(os.close, handle)
                if not _is_locked(handle, fcntl.LOCK_EX) or not _is_named(handle, path):
                    return False
                locked[handle] = path
            except OSError as error:
                refusals.append(f"{path.parent} ({error.strerror})")
        if not locked:
            told = ", ".join(refusals) or "there is neither /run/lock nor /tmp"
            raise DeviceError(f"the device's lock cannot be taken: {told}; make one of them writable")
        held.begin(locked, undo.pop_all(), owner)
    return True


def _opened(path: Path, access: int) -> int:
    """Open the lock's file; whoever may write makes it where there is none. Raises DeviceError: it is another's.

    It is made only where it is not there: in folders like /tmp the kernel refuses both at once for another's file.

    *Source*: proc_sys_fs(5), protected_regular.
    """
    flags = access | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        if access == os.O_RDWR and not os.path.lexists(path):
            with suppress(FileExistsError):
                handle = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
                os.fchmod(handle, 0o666)  # nosec B103  # every account of the machine shares the lock
                return handle
        handle = os.open(path, flags)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise DeviceError(_NO_LOCK.format(path)) from error
        raise
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:  # one of somebody's by another name
        os.close(handle)
        raise DeviceError(_NO_LOCK.format(path))
    return handle


_NO_LOCK = "{}: is not a lock of perfsuite's, expected a plain file; remove it"


def _is_locked(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_named(handle: int, path: Path) -> bool:
    """Whether a file that has been opened still has its name."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(handle))
    except OSError:
        return False


def _has_open(pid: int, path: Path) -> bool:
    """Whether a process has a file open, as far as this account may see."""
    try:
        return any(os.path.samestat(each.stat(), os.lstat(path)) for each in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def _own_folder(owner: LockOwner) -> tuple[Path, ...]:
    """Return where a run has kept what must be restored, if that is a folder which only this account writes to."""
    folder = Path(owner.state_folder)
    with suppress(PerfsuiteError):
        refuse_foreign(folder, PerfsuiteError)
        return (folder,) if owner.state_folder and folder.is_dir() else ()
    return ()


def _folders(folder: Path | Sequence[Path] | None) -> tuple[Path, ...]:
    return lock_folders() if folder is None else (folder,) if isinstance(folder, Path) else tuple(folder)
