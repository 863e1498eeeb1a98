"""``python -m perfsuite.device.lock.command break``: what a desk asks of a device about its lock, answered in JSON."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from perfsuite.device.lock import break_lock, hold_lock, lock_state
from perfsuite.device.lock.reading import account_name
from perfsuite.device.lock.state import STATE_FOLDER, LockOwner, LockState
from perfsuite.errors import LockedError, PerfsuiteError
from perfsuite.records.own_files import user_cache

_USAGE = "give 'state', 'break' or 'break --force'"


def answer(words: Sequence[str], folder: Path | None = None) -> dict[str, Any]:
    """Return the lock (``state``), or break it and return what it was (``break``); ``error`` is why that was refused.

    `folder` is where the lock lies, where that is not as usual. ``lock`` is None where nobody has the device. After
    breaking, what a killed run has left is restored; ``notes`` says what that was.
    """
    try:
        if tuple(words) == ("state",):
            state = lock_state(folder)
            return {"lock": state.to_plain() if state else None, "notes": []}
        if tuple(words) in {("break",), ("break", "--force")}:
            broken = break_lock(folder, force="--force" in words)
            return {"lock": broken.to_plain() if broken else None, "notes": list(_restored(broken, folder))}
    except PerfsuiteError as error:
        return {"error": str(error)}
    return {"error": _USAGE}


def main(words: Sequence[str]) -> int:
    """Print the answer as one line; 2 where it is an error."""
    answered = answer(words)
    print(json.dumps(answered))
    return 2 if "error" in answered else 0


def _restored(broken: LockState | None, lock_folder: Path | None) -> Iterator[str]:
    """Restore what a killed run has left, with the lock in hand; whoever has it already does so himself.

    Another account's lock may name any folder of the machine: that account alone restores from it.
    """
    from perfsuite.device.stability.restore_file import restore_leftovers  # only where a lock was broken

    try:
        folders = [user_cache() / STATE_FOLDER]
    except PerfsuiteError as error:
        folders = []
        yield str(error)
    named = broken.owner.state_folder if broken is not None and broken.owner is not None else ""
    if named and broken is not None and broken.is_own:
        folders += [Path(named)] if Path(named) not in folders else []
    elif named and broken is not None:
        told = f"what that run has changed, if anything, is kept in {named}"
        yield f"{told}; 'perfsuite devices unlock' as the account {broken.account} restores it, as does its next run"
    purpose, run_id = "perfsuite devices unlock", f"unlock-{os.getpid()}"
    owner = LockOwner.here(user=account_name(os.getuid()), host=platform.node(), run_id=run_id, purpose=purpose)
    for folder in folders:
        try:
            with hold_lock(owner, folder=lock_folder):
                left = restore_leftovers(folder)
        except LockedError:
            break
        except PerfsuiteError as error:
            left = (str(error),)
        yield from left


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
