"""Runs a program of the user's under a recorder, as if it had been started without: streams, signals and exit code."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from types import FrameType

from perfsuite.errors import MeasurementError
from perfsuite.measure.environment import program_environment

#: Signals that ask a program to do something; they are handed on.
_FORWARDED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)

#: Those of them that a terminal sends to all programs in its foreground.
_FROM_TERMINAL = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGQUIT})


def run_traced(
    command: Sequence[str],
    extra_environment: Mapping[str, str],
    observe: Callable[[int], AbstractContextManager[object]] = lambda _: nullcontext(),
) -> int:
    """Run a program to its end, however long it takes, and return its exit code; 128 + N where signal N killed it.

    `observe` is given the process's id, and what it returns is open for as long as the process runs; where it fails,
    the program runs to its end nevertheless, and the failure is raised after it.

    Raises `MeasurementError` where the program cannot be started.
    """
    with _forwarded() as recipient:
        process = _start(command, program_environment(extra_environment))
        recipient.begin(process)
        try:
            with observe(process.pid):
                returncode = process.wait()
        finally:
            process.wait()
    return 128 - returncode if returncode < 0 else returncode


def _start(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start it in our own process group, so that it may read from the terminal."""
    try:
        return subprocess.Popen(list(command), env=environment)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise MeasurementError(f"{command[0]}: cannot be started ({reason})") from None


class _Recipient:
    """Hands signals to the program, those that came before it was started as well."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting: list[int] = []

    def begin(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        while self._waiting:
            self._send(self._waiting.pop(0))

    def take(self, number: int, _: FrameType | None) -> None:
        if number in _FROM_TERMINAL and _in_foreground():
            return  # the program had it from the terminal
        if self._process is None:
            self._waiting.append(number)
        else:
            self._send(number)

    def _send(self, number: int) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)


@contextmanager
def _forwarded() -> Iterator[_Recipient]:
    recipient = _Recipient()
    heard = [each for each in _FORWARDED if signal.getsignal(each) is not signal.SIG_IGN]  # as nohup ignores some
    previous = {number: signal.signal(number, recipient.take) for number in heard}
    try:
        yield recipient
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    """Tell whether a terminal would send its signals to our process group."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
