"""One run at a time on a device, by a lock that lies on the device itself.

The code runs on the device: a run on this machine calls it directly, and on a board the agent does. A lock is never
broken by itself where its holder crashed or hangs, since such a run may have left the device changed: it is explained,
and ``perfsuite devices unlock NAME`` breaks it. Two exceptions, both with a note: a lock from before the device
started, which nobody can hold, and one that a crashed process of the same run left.

What a lock says is a claim of the account to which it belongs: anybody may place one, in a folder that everybody may
write to, and name any run and any process. So a lock is one's own only where one's own account has placed it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from perfsuite.device.held_signals import signals_held_off
from perfsuite.device.lock.held import HeldLock
from perfsuite.device.lock.owner import LockOwner
from perfsuite.device.lock.place import remove_lock
from perfsuite.device.lock.reading import lock_folders, lock_states
from perfsuite.device.lock.state import Holder, LockState
from perfsuite.device.lock.taking import CHANGING, N_TRIES, take_lock
from perfsuite.errors import LockedError


@contextmanager
def hold_lock(
    owner: LockOwner,
    *,
    name: str = "NAME",
    folder: Path | None = None,
    beat_s: float = 5.0,
    wait_s: float = 0.0,
    tell: Callable[[str], None] | None = None,
) -> Iterator[HeldLock]:
    """Have the lock of this machine for as long as the context lasts.

    A thread notes every `beat_s` that the holder is alive: two system calls, which no measurement feels. Processes of
    one run (with one `run_id`) share the lock: the inner ones only look whether it is still had, and do not give it
    back, so a run that starts another one under its own `run_id` does not wait for itself.

    The device's `name` is for messages. Without a `folder` the lock lies in the one place of this machine. Somebody
    whose run is under way is waited for, `wait_s` at most; `tell` then hears once for whom.

    Raises LockedError: somebody else has the device, with who, since when, and what to do; DeviceError: no
    folder takes the lock.
    """
    held, folders, process = HeldLock(), _folders(folder), os.getpid()
    try:
        take_lock(held, owner, name, folders, wait_s, tell)
        held.begin(beat_s)
        yield held
    finally:
        if os.getpid() == process:
            with signals_held_off():
                held.end(folders)


def lock_state(folder: Path | None = None) -> LockState | None:
    """Return who has this machine; None where nobody has."""
    return next(lock_states(_folders(folder)), None)


def break_lock(folder: Path | None = None, *, force: bool = False) -> LockState | None:
    """Break the lock of this machine; return what it was, None where there was none.

    Raises LockedError: its holder runs and `force` does not say to break it nevertheless, or it belongs to another
    account.
    """
    for _ in range(N_TRIES):
        state = lock_state(folder)
        if state is None:
            return None
        if state.holder is Holder.RUNS and not force:
            raise LockedError(f"{state.text}; wait until it has ended, or break the lock under it with --force")
        if remove_lock(Path(state.path).parent, state):
            return state
    raise LockedError(CHANGING)


def _folders(folder: Path | None) -> tuple[Path, ...]:
    return lock_folders() if folder is None else (folder,)
