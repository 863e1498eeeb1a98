"""The lock of a device, as another process of the suite would have it: a file that is locked, and says by whom."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfsuite.device.lock_owner import LockOwner, account_name

LOCK_NAME = "perfsuite.lock"

#: Somebody's run, in this process.
ANNA = LockOwner(
    user="anna",
    host="desk",
    run_id="r1",
    purpose="pytest --device=board",
    began_at="2026-01-02T03:04:05+00:00",
    account=account_name(os.geteuid()),
    pid=os.getpid(),
)


def owner_called(user: str, **told: Any) -> LockOwner:
    """Return somebody's run in this process."""
    return replace(ANNA, user=user, pid=os.getpid(), **told)


@contextmanager
def hold_lock(owner: LockOwner = ANNA, *, folder: Path) -> Iterator[None]:
    """Have the lock in a folder."""
    handle = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(owner.to_plain()).encode(), 0)
        yield
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def lock_holder(folder: Path) -> LockOwner | None:
    """Return who has the lock in a folder; None where nobody has."""
    if not (folder / LOCK_NAME).exists():
        return None
    handle = os.open(folder / LOCK_NAME, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return LockOwner.from_plain(json.loads((folder / LOCK_NAME).read_text()))
    finally:
        os.close(handle)
    return None


#: Has the lock until it is ended.
_HOLDER = "import sys, time; from pathlib import Path; from tests.device_lock import *; held(*sys.argv[1:])"


def held(folder: str, user: str) -> None:
    """Have the lock as somebody, in a process of its own; say so, and wait."""
    with hold_lock(owner_called(user, run_id=user), folder=Path(folder)):
        print("held", flush=True)
        time.sleep(600)


@contextmanager
def held_by(folder: Path, user: str) -> Iterator[subprocess.Popen[str]]:
    """Let a process have the lock as somebody."""
    root = str(Path(__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(folder), user], cwd=root, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()
