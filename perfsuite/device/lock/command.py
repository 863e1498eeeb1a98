"""``python -m perfsuite.device.lock.command break``: what a desk asks of a device about its lock, answered in JSON."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import platformdirs

from perfsuite.device.lock import break_lock, hold_lock, lock_state
from perfsuite.device.lock.reading import account_name
from perfsuite.device.lock.state import STATE_FOLDER, LockOwner, LockState
from perfsuite.errors import LockedError, PerfsuiteError

_USAGE = "give 'state', 'break' or 'break --force'"


def answer(words: Sequence[str]) -> dict[str, Any]:
    """Return the lock (``state``), or break it and return what it was (``break``); ``error`` is why that was refused.

    ``lock`` is None where nobody has the device. After breaking, what a killed run has left is restored; ``notes`` says
    what that was.
    """
    try:
        if tuple(words) == ("state",):
            state = lock_state()
            return {"lock": state.to_plain() if state else None, "notes": []}
        if tuple(words) in {("break",), ("break", "--force")}:
            broken = break_lock(force="--force" in words)
            return {"lock": broken.to_plain() if broken else None, "notes": list(_restored(broken))}
    except PerfsuiteError as error:
        return {"error": str(error)}
    return {"error": _USAGE}


def main(words: Sequence[str]) -> int:
    """Print the answer as one line; 2 where it is an error."""
    answered = answer(words)
    print(json.dumps(answered))
    return 2 if "error" in answered else 0


def _restored(broken: LockState | None) -> tuple[str, ...]:
    """Restore what a killed run has left, with the lock in hand; whoever has it already does so himself."""
    from perfsuite.device.stability.restore_file import restore_leftovers  # only where a lock was broken

    name = "perfsuite devices unlock"
    user = account_name(os.getuid())
    owner = LockOwner.here(user=user, host=platform.node(), run_id=f"unlock-{os.getpid()}", purpose=name)
    own_folder = Path(platformdirs.user_cache_dir("perfsuite")) / STATE_FOLDER
    notes = list(_foreign_notes(broken))
    for folder in _state_folders(broken, own_folder):
        try:
            with hold_lock(owner):
                notes += restore_leftovers(folder)
        except LockedError:
            break
        except PerfsuiteError as error:
            notes.append(str(error))
    return tuple(notes)


def _state_folders(broken: LockState | None, own_folder: Path) -> tuple[Path, ...]:
    """Return where this account may have kept something; another account's lock may name any folder of the machine."""
    named = broken.owner.state_folder if broken is not None and broken.is_own and broken.owner is not None else ""
    return tuple(dict.fromkeys((own_folder, Path(named)) if named else (own_folder,)))


def _foreign_notes(broken: LockState | None) -> Iterator[str]:
    """Say where another account's run may have left something to restore."""
    if broken is not None and not broken.is_own and broken.owner is not None and broken.owner.state_folder:
        told = f"what that run has changed, if anything, is kept in {broken.owner.state_folder}"
        yield f"{told}; 'perfsuite devices unlock' as the account {broken.account} restores it, as does its next run"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
