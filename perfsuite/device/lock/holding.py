"""One run at a time on a device, by a lock that lies on the device itself.

The code runs on the device: a run on this machine calls it directly, and on a board the agent does. A lock is never
broken by itself where its holder crashed or hangs, since such a run may have left the device changed: it is explained,
and ``perfsuite devices unlock NAME`` breaks it. Two exceptions, both with a note: a lock from before the device
started, which nobody can hold, and one that a crashed process of the same run left.

What a lock says is a claim of the account to which it belongs: anybody may place one, in a folder that everybody may
write to, and name any run and any process. So a lock is your own only where your own account has placed it.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from perfsuite.device.end_requests import signals_held_off
from perfsuite.device.lock.place import PlacedLock, place_lock, remove_lock
from perfsuite.device.lock.reading import lock_folders, lock_states, read_lock
from perfsuite.device.lock.state import Holder, LockOwner, LockState
from perfsuite.errors import DeviceError, LockedError

#: Longest to wait for a beat that is being written.
_JOIN_LIMIT_S = 6.0


@dataclass(kw_only=True)
class HeldLock:
    """A lock that this run has."""

    #: What a user should know of how it was come by.
    notes: tuple[str, ...] = ()
    #: Whether somebody has broken it meanwhile: what is measured since may be disturbed.
    is_lost: bool = False
    #: What was placed; and who was to be named in it, which is known before. For who takes the lock.
    placed: PlacedLock | None = None
    named: LockOwner | None = None
    #: The lock of another process of this run, where that has it.
    shared: LockState | None = None
    _ended: threading.Event = field(default_factory=threading.Event)
    _beating: threading.Thread | None = None

    def beat(self) -> None:
        """Note that the holder is alive, and look whether the lock is still had; a full disk is no reason to end."""
        if self.placed is not None:
            with suppress(OSError):
                self.placed.beat()
            self.is_lost = self.is_lost or not self.placed.is_there()
        elif self.shared is not None:
            self.is_lost = self.is_lost or not _is_had(self.shared)

    @property
    def is_nested(self) -> bool:
        """Whether another process of the same run has it, so that it is not given back here."""
        return self.shared is not None

    def begin(self, beat_s: float) -> None:
        """Let a thread beat; signals are for others, which may be waiting for them."""
        with signals_held_off():
            self._beating = threading.Thread(target=self._beat_on, args=(beat_s,), name="perfsuite-lock", daemon=True)
            self._beating.start()

    def _beat_on(self, beat_s: float) -> None:
        while not self._ended.wait(beat_s):
            self.beat()

    def end(self, folders: tuple[Path, ...]) -> None:
        """Give the lock back, also one that was placed while a signal came, and is not known here."""
        self._ended.set()
        if self._beating is not None:
            self._beating.join(timeout=_JOIN_LIMIT_S)
        if self.placed is not None:
            self.beat()
            self.placed.remove()
        elif self.named is not None:
            with suppress(DeviceError, LockedError):
                for state in lock_states(folders):
                    if state.owner == self.named and state.is_own:
                        remove_lock(Path(state.path).parent, state)


def _is_had(shared: LockState) -> bool:
    """Whether the process of this run that had the lock has it still."""
    try:
        now = read_lock(Path(shared.path).parent)
    except DeviceError:
        return False
    return now is not None and now.owner == shared.owner and now.holder in (Holder.RUNS, Holder.HANGS)


#: How often two who hinder each other, or a lock that changes under the eyes, are tried before it is refused so.
N_TRIES, CHANGING = 20, "the device's lock changes hands all the time; try again"

#: Time between two looks at a lock that is waited for.
_LOOK_S = 1.0


def take_lock(
    held: HeldLock,
    owner: LockOwner,
    name: str,
    folders: tuple[Path, ...],
    wait_s: float,
    tell: Callable[[str], None] | None,
) -> None:
    """Take the lock, or wait for whoever has it; its parameters and errors are those of `hold_lock`.

    What is taken is noted in `held` at once, so that it is given back whatever comes then.
    """
    until = time.monotonic() + wait_s
    while (state := _try(held, owner, folders)) is not None:
        left_s = until - time.monotonic()
        if state.holder not in {Holder.RUNS, Holder.HANGS} or left_s <= 0:
            waited = f"; waited {wait_s:.0f} s for it" if wait_s and left_s <= 0 else ""
            raise LockedError(f"{state.refusal(name)}{waited}")
        if tell is not None:
            tell(f"{name}: {state.text}; waiting for it, {wait_s:.0f} s at most")
            tell = None
        time.sleep(min(left_s, _LOOK_S * random.uniform(0.5, 1.0)))


def _try(held: HeldLock, owner: LockOwner, folders: tuple[Path, ...]) -> LockState | None:
    """Take the lock; return the one that somebody else has, None where it is had now.

    A lock may be in any of the folders, since not everybody may write to the first. So whoever has placed one looks
    again whether there is another, and then gives way. Two who do so at the same time both give way, and try again.
    """
    state: LockState | None = None
    usable = folders
    for _ in range(N_TRIES):
        state = next(lock_states(usable), None)
        if state is None:
            if _is_placed(held, owner, usable) and _is_alone(held, owner, folders):
                return None
        elif _is_shared(state, owner):
            held.shared = state
            return None
        elif _can_take_over(state, owner):
            usable = _without(state, usable, held)
        else:
            return state
    if state is not None:
        return state
    raise LockedError(CHANGING)


def _is_placed(held: HeldLock, owner: LockOwner, folders: tuple[Path, ...]) -> bool:
    """Place the lock in the first folder that takes it; False where somebody was faster."""
    refusals = []
    for folder in folders:
        try:
            with signals_held_off():
                held.named = owner.beginning_now()
                held.placed = place_lock(folder, held.named)
                return held.placed is not None
        except OSError as error:
            refusals.append(f"{folder} ({error.strerror})")
    told = ", ".join(refusals) or "there is neither /run/lock nor /tmp"
    raise DeviceError(f"the device's lock cannot be written: {told}; free space there, or make one of them writable")


def _is_alone(held: HeldLock, owner: LockOwner, folders: tuple[Path, ...]) -> bool:
    """Say whether no other folder has a lock that counts; else give way."""
    assert held.placed is not None
    others = tuple(each for each in folders if each != held.placed.folder)
    if all(_can_take_over(state, owner) for state in lock_states(others)):
        return True
    with signals_held_off():
        held.placed.remove()
        held.placed = None
    time.sleep(random.uniform(0.0, 0.05))
    return False


def _without(state: LockState, folders: tuple[Path, ...], held: HeldLock) -> tuple[Path, ...]:
    """Remove a lock that nobody holds; where another account has left it, return the folders but that one."""
    parent = Path(state.path).parent
    try:
        if remove_lock(parent, state):
            held.notes += (f"took over the device's lock, {state.text}",)
        return folders
    except LockedError:
        left = tuple(each for each in folders if each != parent)
        if not left:
            raise
        return left


def _is_shared(state: LockState, owner: LockOwner) -> bool:
    return _is_of_this_run(state, owner) and state.holder is Holder.RUNS


def _can_take_over(state: LockState, owner: LockOwner) -> bool:
    return state.holder is Holder.EARLIER_BOOT or (_is_of_this_run(state, owner) and state.holder is Holder.GONE)


def _is_of_this_run(state: LockState, owner: LockOwner) -> bool:
    return state.is_own and state.owner is not None and state.owner.run_id == owner.run_id


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

    The device's `name` is for messages. Without a `folder` the lock is in the one place of this machine. Somebody
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
