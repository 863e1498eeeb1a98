"""What ``perfsuite devices unlock`` asks of a device about its lock, answered for this machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from perfsuite.device.lock import end_holder, hold_lock, lock_holder
from perfsuite.device.lock_owner import LockOwner, account_name
from perfsuite.errors import LockedError, PerfsuiteError
from perfsuite.records.own_files import user_cache

_USAGE = "give 'state', 'break' or 'break --force'"


def answer(words: Sequence[str], folder: Path | None = None) -> dict[str, Any]:
    """Return who has the lock (``state``), or had it before that run was ended (``break --force``).

    `folder` is where the lock lies, where that is not as usual. ``lock`` is None where nobody has the device. ``break``
    restores what a killed run has left; ``notes`` says what that was. ``error`` is why it was refused.
    """
    is_forced = tuple(words) == ("break", "--force")
    if not is_forced and tuple(words) not in {("state",), ("break",)}:
        return {"error": _USAGE}
    try:
        owner = lock_holder(folder)
        told: dict[str, Any] = {"lock": owner.to_plain() if owner else None, "notes": []}
        if tuple(words) == ("state",):
            return told
        if owner is not None and not is_forced:
            return {"error": f"held by {owner.text}; wait until it has ended, or end it with --force"}
        if owner is not None:
            end_holder(owner, folder)
        return {**told, "notes": list(_restored(folder))}
    except PerfsuiteError as error:
        return {"error": str(error)}


def _restored(lock_folder: Path | None) -> Iterator[str]:
    """Restore what a killed run has left, with the lock in hand; whoever has it already does so himself."""
    from perfsuite.device.stability.restore_file import STATE_FOLDER, restore_leftovers  # where a lock was broken

    state_folder = user_cache() / STATE_FOLDER
    purpose, run_id = "perfsuite devices unlock", f"unlock-{os.getpid()}"
    owner = LockOwner.here(user=account_name(os.getuid()), host=platform.node(), run_id=run_id, purpose=purpose)
    try:
        with hold_lock(owner, folder=lock_folder) as held:
            yield from held.notes
            for each in dict.fromkeys((state_folder, *held.left_folders)):
                yield from restore_leftovers(each)
    except LockedError:
        return
