"""Having a machine for a while: its lock, and the conditions under which it is measured."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfsuite.device.machine import Conditions

if TYPE_CHECKING:
    from perfsuite.device.lock import HeldLock
    from perfsuite.device.stability.stabilised import Stability

#: What it says of a run that others were no longer kept from the device.
_LOST_LOCK = "the device's lock was lost while this ran, and somebody else may have used the device; run again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The run or command that wants a machine, in words for others who want it."""

    #: The device's name on the desk.
    name: str
    user: str
    #: The desk.
    host: str
    run_id: str
    #: Such as ``pytest --device=rubikpi``.
    purpose: str
    #: How long to wait for somebody else who has it, s.
    wait_s: float = 0.0
    #: Where locks lie; None is the machine's one place.
    lock_folder: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What having the machine came to so far."""

    #: What a reader of the run should know.
    notes: tuple[str, ...] = ()
    #: Why what is measured cannot be trusted.
    problems: tuple[str, ...] = ()

    def to_plain(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Held:
        """Undo `to_plain`."""
        return cls(notes=tuple(plain["notes"]), problems=tuple(plain["problems"]))


NOTHING_HELD = Held()

#: Says what having the machine came to so far.
Seen = Callable[[], Held]

#: Takes a machine for as long as the context lasts.
Hold = Callable[[], AbstractContextManager[Seen]]


def not_held() -> AbstractContextManager[Seen]:
    """Take nothing: for a machine that is not measured."""
    return nullcontext(lambda: NOTHING_HELD)


@contextmanager
def held(conditions: Conditions, claim: Claim, tell: Callable[[str], None], *, cache_dir: Path) -> Iterator[Seen]:
    """Have this machine's lock, and bring it into its conditions; both end with the context.

    `tell` gets what is waited for. Where another process of the same run has the lock, what that one has set stays.

    Raises `LockedError` where somebody else has the machine; `DeviceError` where it cannot be locked, or lacks the
    processors that the conditions name.
    """
    from perfsuite.device.lock import hold_lock  # only whoever measures needs a lock, and the device's state
    from perfsuite.device.lock_owner import LockOwner
    from perfsuite.device.stability.restore_file import STATE_FOLDER, restore_leftovers
    from perfsuite.device.stability.stabilised import stabilised

    folder = None if claim.lock_folder is None else Path(claim.lock_folder)
    state_folder = cache_dir / STATE_FOLDER
    owner = LockOwner.here(
        user=claim.user,
        host=claim.host,
        run_id=claim.run_id,
        purpose=claim.purpose,
        state_folder=str(state_folder.absolute()),
    )
    with hold_lock(owner, name=claim.name, folder=folder, wait_s=claim.wait_s, tell=tell) as lock:
        others = [left for left in lock.left_folders if left != state_folder.absolute()]
        restored = tuple(note for left in others for note in restore_leftovers(left))
        steady = stabilised(conditions, folder=state_folder, is_nested=lock.shared is not None)
        with _bound(conditions), steady as stability:
            yield lambda: _seen(lock, stability, restored)


@contextmanager
def _bound(conditions: Conditions) -> Iterator[None]:
    """Let this process, and the workers that it starts, use the conditions' processors only."""
    from perfsuite.device.stability.stabilised import bind_to  # as above

    before = os.sched_getaffinity(0)
    bind_to(conditions.processors)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _seen(lock: HeldLock, stability: Stability, restored: tuple[str, ...]) -> Held:
    lost = (_LOST_LOCK,) if lock.is_lost else ()
    return Held(notes=(*lock.notes, *restored, *stability.notes), problems=(*stability.problems, *lost))
