"""Who has this machine's lock, as its program says: whoever asks need not have a run."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from perfsuite.device.lock_owner import LockOwner
from perfsuite.errors import LockedError, NativeBuildError
from perfsuite.measure.environment import program_environment
from perfsuite.measure.native import find_worker
from perfsuite.records.own_files import user_cache

#: Longer than a run takes that is asked to end, and then is killed.
_LIMIT_S = 60.0


def answered_here(*words: str) -> dict[str, Any]:
    """Return what ``perfsuite-worker lock`` says to ``state``, ``break`` or ``break --force``.

    ``lock`` is who has it, or had it before that run was ended; None where nobody has. ``break`` restores what a killed
    run has left; ``notes`` says what that was. ``error`` is why it was refused.
    """
    command = [str(find_worker(user_cache())), "lock", *words]
    told = subprocess.run(command, env=program_environment({}), capture_output=True, text=True, timeout=_LIMIT_S)
    try:
        plain: dict[str, Any] = json.loads(told.stdout)
    except ValueError:
        raise LockedError(f"the lock of this machine cannot be asked for: {told.stderr.strip()}") from None
    return plain


def lock_holder() -> LockOwner | None:
    """Return who has this machine; None where nobody has, or where that cannot be said."""
    try:
        lock = answered_here("state").get("lock")
    except NativeBuildError:  # where nothing can be built, nothing is measured
        return None
    return None if lock is None else LockOwner.from_plain(lock)
