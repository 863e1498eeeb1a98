"""Real processes that hold the lock of a folder, for the tests of the lock."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perfsuite.device.lock_owner import LockOwner

#: Takes the lock of a folder, says so, and gives it back when its input ends.
_HOLDER = """
import os, sys
from pathlib import Path
from perfsuite.device.lock import hold_lock
from perfsuite.device.lock_owner import LockOwner
from perfsuite.errors import PerfsuiteError
folder, user, wait_s, uid, within = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
if uid:
    os.setresuid(uid, uid, uid)
owner = LockOwner.here(user=user, host="desk", run_id=user, purpose="pytest --device=board")
try:
    with hold_lock(owner, name="board", folder=folder, wait_s=wait_s):
        exec(within)
        print("held", flush=True)
        sys.stdin.read()
except PerfsuiteError as error:
    print(error, flush=True)
"""


def owner_called(user: str) -> LockOwner:
    """Return a run of this process, whose id is the user's name."""
    return LockOwner.here(user=user, host="desk", run_id=user, purpose="pytest --device=board")


def started_holder(
    folder: Path, user: str, *, wait_s: float = 0.0, uid: int = 0, within: str = ""
) -> subprocess.Popen[str]:
    """Start a process, of an account by its number, that tries to have the lock, and says whether it has.

    `within` is what it does before it says so."""
    command = [sys.executable, "-c", _HOLDER, str(folder), user, str(wait_s), str(uid), within]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@contextmanager
def held_by(folder: Path, user: str, *, uid: int = 0, within: str = "") -> Iterator[subprocess.Popen[str]]:
    process = started_holder(folder, user, uid=uid, within=within)
    try:
        assert first_line(process) == "held"
        yield process
    finally:
        process.kill()
        process.communicate()
