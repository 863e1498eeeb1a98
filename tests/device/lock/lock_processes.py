"""Real processes that hold the lock of a folder, for the tests of the lock."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perfsuite.device.lock.state import LockOwner

#: Takes the lock of a folder, says so, and gives it back when its input ends.
_HOLDER = """
import sys
from pathlib import Path
from perfsuite.device.lock import hold_lock
from perfsuite.device.lock.state import LockOwner
from perfsuite.errors import PerfsuiteError
folder, user, wait_s = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
owner = LockOwner.here(user=user, host="desk", run_id=user, purpose="pytest --device=board")
try:
    with hold_lock(owner, name="board", folder=folder, beat_s=0.05, wait_s=wait_s):
        print("held", flush=True)
        sys.stdin.read()
except PerfsuiteError as error:
    print(error, flush=True)
"""


def owner_called(user: str) -> LockOwner:
    """Return a run of this process, whose id is the user's name."""
    return LockOwner.here(user=user, host="desk", run_id=user, purpose="pytest --device=board")


def started_holder(folder: Path, user: str, wait_s: float = 0.0) -> subprocess.Popen[str]:
    """Start a process that tries to have the lock; its first line says whether it has."""
    command = [sys.executable, "-c", _HOLDER, str(folder), user, str(wait_s)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def first_line(process: subprocess.Popen[str]) -> str:
    """Return what a holder said first."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def let_go(process: subprocess.Popen[str]) -> None:
    """End a holder's input: it gives the lock back as soon as it has it."""
    assert process.stdin is not None
    process.stdin.close()
    process.stdin = None


def ended(process: subprocess.Popen[str]) -> None:
    """Let a holder give the lock back, and wait for its end."""
    process.communicate(timeout=20)


@contextmanager
def held_by(folder: Path, user: str) -> Iterator[subprocess.Popen[str]]:
    """Have another process hold the lock."""
    process = started_holder(folder, user)
    try:
        assert first_line(process) == "held"
        yield process
    finally:
        process.kill()
        process.communicate()
