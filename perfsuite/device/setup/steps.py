"""Running programs one after the other on a device that is set up: limits, a log, and a line now and then.

It runs there before anything is installed, by whatever Python there is: it imports the standard library alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from perfsuite.device.process_start import process_start
from perfsuite.errors import DeviceError

#: How often a step says what its program printed last.
TICK_S = 5.0

#: Between asking a program to end, and ending it; for ending it; and how often is looked what it has started.
_GRACE_S, _KILLING_LIMIT_S, _LOOK_S = 1.0, 5.0, 0.02


class Steps:
    """Runs one program after the other; all that they print is in a log."""

    def __init__(self, log: Path, tell: Callable[..., None]) -> None:
        self._log, self._tell = log, tell
        self._process: subprocess.Popen[bytes] | None = None
        #: Whether `end` was called.
        self.is_ended = False

    def run(self, what: str, command: list[str], limit_s: float) -> list[str]:
        """Run a program; return the lines that it printed.

        Raises DeviceError: it cannot be started, fails, takes longer, or `end` was called; one line with its own last
        words.
        """
        self._tell(step=what)
        with self._log.open("ab") as log:
            log.write(f"\n# {what}\n{' '.join(command)}\n".encode())
            process = self._started(command)
            reader = _Reader(process, log)
            status = self._waited(process, what, limit_s, reader)
        if status:
            raise DeviceError(f"{what}: {telling_line(reader.lines, status)}; all of it is in {self._log}")
        return reader.lines

    def end(self) -> None:
        """End what runs, with all that it has started; no further program is started."""
        self.is_ended = True
        process = self._process
        if process is not None:
            _kill(process)

    def _started(self, command: list[str]) -> subprocess.Popen[bytes]:
        if self.is_ended:
            raise DeviceError("ended from outside")
        try:
            process = self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise DeviceError(f"{command[0]}: cannot be started ({error.strerror})") from None
        if self.is_ended:  # meanwhile, when there was no process yet that `end` could have ended
            _kill(process)
            assert process.stdout is not None
            process.stdout.close()
            raise DeviceError("ended from outside")
        return process

    def _waited(self, process: subprocess.Popen[bytes], what: str, limit_s: float, reader: _Reader) -> int:
        begun_s = time.monotonic()
        try:
            while True:
                try:
                    return process.wait(min(TICK_S, limit_s))
                except subprocess.TimeoutExpired:
                    elapsed_s = time.monotonic() - begun_s
                if elapsed_s >= limit_s:
                    raise DeviceError(f"{what}: took longer than {limit_s:.0f} s, and was ended at: {reader.last_line}")
                self._tell(line=reader.last_line, elapsed_s=round(elapsed_s))
        finally:
            self._process = None  # its number is soon another's
            _kill(process)  # and what it may have left running
            reader.finish()


class _Reader:
    """Reads what a program prints, in a thread, so that limits can be kept."""

    def __init__(self, process: subprocess.Popen[bytes], log: BinaryIO) -> None:
        self.lines: list[str] = []
        self.last_line = ""
        self._process, self._log = process, log
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for raw in self._process.stdout:
            self._log.write(raw)
            self.lines.append(raw.decode("utf-8", "replace").strip())
            self.last_line = self.lines[-1] or self.last_line

    def finish(self) -> None:
        """Wait for the last line; what was left running may keep the pipe open, and is not waited for."""
        self._thread.join(10.0)
        if not self._thread.is_alive() and self._process.stdout is not None:
            self._process.stdout.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a program and all that it has started.

    That is its session, and not only its process group: ninja gives each compiler a group of its own.
    """
    for number, limit_s in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _KILLING_LIMIT_S)):
        until_s = time.monotonic() + limit_s
        told: set[int] = set()
        while (alive := set(_session(process))) and time.monotonic() < until_s:
            for pid in alive - told:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
            told |= alive
            time.sleep(_LOOK_S)


def _session(process: subprocess.Popen[bytes]) -> Iterator[int]:
    """Yield the processes that are alive of the session that a program leads."""
    process.poll()
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):
            if os.getsid(int(name)) == process.pid and not _is_ended(int(name)):
                yield int(name)


def _is_ended(pid: int) -> bool:
    started = process_start(pid)
    return started is None or started.is_ended


def telling_line(lines: list[str], status: int) -> str:
    """Return the line that says most: the last one that calls itself an error, else the last one."""
    told = [line for line in lines if line]
    errors = [line for line in told if line.lower().startswith(("error:", "fatal error")) or ": error: " in line]
    return (errors or told or [f"it printed nothing and returned {status}"])[-1]
