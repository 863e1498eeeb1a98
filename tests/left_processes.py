"""What tests have left running: found by the environment that they hand on, reported and ended.

    python tests/left_processes.py    # ends what a run that was killed has left, by RUN in the environment

A process counts as a test's while PYTEST_CURRENT_TEST in its environment names the test's call: fixtures of a module or
a session start theirs in a setup, and end them by themselves.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

#: The variable that every process of one run of the tests has: the number of its first process, and when that started.
RUN = "PERFSUITE_TESTS_RUN"

#: The variable that what one process of several side by side has started has, for they share files.
_WORKER = "PERFSUITE_TESTS_WORKER"

#: How long a process may take to end by itself.
_GRACE_S = 5.0


class LeftProcess(NamedTuple):
    pid: int
    test: str
    command: str


def mark_run() -> None:
    """Let what is started from here on be known as of this run; one that is known already stays so."""
    os.environ.setdefault(RUN, f"{os.getpid()}-{time.monotonic_ns()}")
    os.environ[_WORKER] = str(os.getpid())


def left_by_tests(file: str) -> list[LeftProcess]:
    """Return what the calls of a file's tests have started and not ended, in this run; it gets time to end."""
    return _settled(lambda each: each.test.startswith(file) and each.test.endswith(" (call)"))


def left_by_run() -> list[LeftProcess]:
    """Return all that this run has started, except this process and those that started it."""
    return _settled(lambda _: True)


def end(left: list[LeftProcess]) -> None:
    for each in left:
        try:
            os.kill(each.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _settled(wanted: Callable[[LeftProcess], bool]) -> list[LeftProcess]:
    until = time.monotonic() + _GRACE_S
    while left := [each for each in _processes(_ancestors()) if wanted(each)]:
        if time.monotonic() > until:
            break
        time.sleep(0.05)
    return left


def _ancestors() -> set[int]:
    found, pid = set(), os.getpid()
    while pid > 1:
        found.add(pid)
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return found


def _processes(but: set[int]) -> list[LeftProcess]:
    mark, found = {f"{name}={os.environ[name]}".encode() for name in (RUN, _WORKER) if name in os.environ}, []
    if RUN not in os.environ:  # every process would be one of it
        return []
    for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))):
        try:
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") if pid not in but else ()
            if not mark.issubset(variables):
                continue
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
        except OSError:  # gone, or somebody else's
            continue
        test = next((each for each in variables if each.startswith(b"PYTEST_CURRENT_TEST=")), b"=").partition(b"=")[2]
        if command:  # a zombie has none
            found.append(LeftProcess(pid, os.fsdecode(test), os.fsdecode(command).strip()))
    return found


if __name__ == "__main__":
    for process in (left := left_by_run()):
        print(f"ended what the tests left: {process.command} ({process.test})", file=sys.stderr)
    end(left)
