"""The steps of making a bundle: programs that run for minutes, their log, and how far they are."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from perfsuite.errors import NativeBuildError
from perfsuite.records.own_files import is_locked, open_lock

#: As ninja begins its lines.
_COUNTED = re.compile(r"\[(\d+)/(\d+)\]")

#: Longest for one program: llama.cpp on one slow core.
_STEP_LIMIT_S = 2 * 3600.0


class Tell(Protocol):
    """Hears what is done now, and how many of how many steps of it are done."""

    def __call__(self, what: str, n_done: int = 0, n_all: int | None = None, /) -> None:
        """Take it."""


def run_step(
    what: str,
    command: Sequence[str],
    log: Path,
    tell: Tell,
    *,
    environment: Mapping[str, str] | None = None,
    limit_s: float = _STEP_LIMIT_S,
) -> None:
    """Run a program with all that it says in a log; what interrupts this ends it, and what it has started.

    Raises `NativeBuildError` where it fails or does not end; the message has the line of the log that says most.
    """
    tell(what)
    log.parent.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        env=environment,
    )
    ending = threading.Timer(limit_s, _end, (process,))
    ending.start()
    try:
        assert process.stdout is not None
        with process.stdout, log.open("w") as out:
            out.write(" ".join(command) + "\n")
            for line in process.stdout:
                out.write(line)
                if counted := _COUNTED.match(line):
                    tell(what, int(counted[1]), int(counted[2]))
        status = process.wait(_STEP_LIMIT_S)
    finally:
        is_late = not ending.is_alive()
        ending.cancel()
        _end(process)
        process.wait()
    if is_late:
        raise NativeBuildError(f"{what}: still running after {limit_s:.0f} s and was ended; see {log}")
    if status:
        raise NativeBuildError(f"{what}: {_telling(log)}; the whole log is {log}")


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _telling(log: Path) -> str:
    """Return the first line of a log that calls itself an error, or else the last."""
    lines = [" ".join(line.split()) for line in log.read_text(errors="replace").splitlines() if line.strip()]
    at = next((n for n, line in enumerate(lines) if re.search(r"\berror\b", line, re.IGNORECASE)), len(lines) - 1)
    # CMake says where an error is in one line, and in the next what it is.
    told = lines[at] if not lines[at].startswith("CMake Error") else " ".join(lines[at : at + 2])
    return "".join(each if each.isprintable() else "?" for each in told[:200])


@contextmanager
def one_at_a_time(path: Path, tell: Tell) -> Iterator[None]:
    """Wait until nobody else makes the same, which is then there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = open_lock(path, NativeBuildError)
    try:
        if not is_locked(handle):
            tell("waiting for somebody who makes the same")
        if not is_locked(handle, _STEP_LIMIT_S):
            raise NativeBuildError(f"{path}: somebody has made the same for {_STEP_LIMIT_S:.0f} s; look who it is")
        yield
    finally:
        os.close(handle)
