"""A lock that this process has: its heartbeat, whether it is still there, and giving it back."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from perfsuite.device.end_requests import signals_held_off
from perfsuite.device.lock.place import PlacedLock, remove_lock
from perfsuite.device.lock.reading import lock_states, read_lock
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
