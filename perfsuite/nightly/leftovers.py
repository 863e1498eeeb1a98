"""Ends what a cell left running whose keeper was killed, so that the next cell does not measure beside it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

#: After each signal, how long the processes have.
_PATIENCE_S = ((signal.SIGINT, 20.0), (signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0))

_POLL_PERIOD_S = 0.1


def end_session(session: int) -> int:
    """Interrupt, then terminate, then kill what is left of a session; return how many processes there were.

    The number of a session is that of the process that began it, and is given to no other one while any is in it.
    """
    found = set(_processes(session))
    for number, patience_s in _PATIENCE_S:
        for pid in _processes(session):
            with suppress(OSError):
                os.kill(pid, number)
        deadline_s = time.monotonic() + patience_s
        while any(_processes(session)) and time.monotonic() < deadline_s:
            time.sleep(_POLL_PERIOD_S)
    return len(found)


def _processes(session: int) -> Iterator[int]:
    """Yield the processes of a session that have not ended.

    *Source*: proc_pid_stat(5): after the name in parentheses, which may hold anything, come the state (field 3), the
    parent, the group and the session (field 6).
    """
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            after_name = stat.read_bytes().rpartition(b")")[2].split()
            if int(after_name[3]) == session and after_name[0] not in (b"Z", b"X"):
                yield int(stat.parent.name)
