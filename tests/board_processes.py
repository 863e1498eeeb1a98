"""Processes of a test board: started so that they die with the tests, found by their namespace, ended for good."""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_STARTER = ThreadPoolExecutor(max_workers=1)


def start_process(*command: str) -> subprocess.Popen[bytes]:
    """Start what dies with this process: with the thread that starts it, in truth, so that is one that stays."""

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    return _STARTER.submit(start).result()


def end_process(process: subprocess.Popen[bytes]) -> None:
    """End what was started, and let go of its pipe."""
    process.kill()
    process.wait()
    assert process.stderr is not None
    process.stderr.close()


def child_of(pid: int) -> int | None:
    """Return the first child of a process; None where it has none, or is gone."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return None
    return int(children[0]) if children else None


def processes_beside(init: int, pattern: str) -> tuple[int, ...]:
    """Return the processes in the namespace of this one, but for itself, whose command line has a match."""
    own = _namespace_of(init)
    return tuple(
        pid
        for pid in map(int, filter(str.isdecimal, os.listdir("/proc")))
        if pid != init and _namespace_of(pid) == own and re.search(pattern, _command_line(pid))
    )


def _namespace_of(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""
