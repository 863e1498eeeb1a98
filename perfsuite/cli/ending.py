"""How the ``perfsuite`` command ends: whatever happens is an exit code and one line at most, never a traceback."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TextIO

from perfsuite.device.end_requests import requests_heard
from perfsuite.errors import PerfsuiteError

#: Whether the command that runs has failed, though what it found is still to be told.
_HAS_FAILED: ContextVar[bool] = ContextVar("_HAS_FAILED", default=False)


def ended(work: Callable[[], int]) -> int:
    """Do the work and return its exit code: 2 for a mistake or an output that takes nothing, 130 for Ctrl-C."""
    before = _HAS_FAILED.set(False)
    try:
        status = _status(work)
        return status or (2 if _HAS_FAILED.get() else 0)
    finally:
        _HAS_FAILED.reset(before)


def fail_in_the_end() -> None:
    """Let the command that runs tell what it found, and end with 2 where its exit code would be 0.

    For what goes wrong once all is measured; the line that says so is the caller's.
    """
    _HAS_FAILED.set(True)


def _status(work: Callable[[], int]) -> int:
    try:
        with _checked_outputs(), requests_heard(_request):
            return work()
    except PerfsuiteError as error:
        return _told(f"error: {error}", 2)
    except BrokenPipeError:
        return 0
    except OSError as error:
        return _told(f"error: {_refusal(error)}", 2)
    except KeyboardInterrupt:
        return _told("interrupted", 130)


def _refusal(error: OSError) -> str:
    reason, named = error.strerror or str(error) or type(error).__name__, error.filename
    return reason if named is None else f"{os.fsdecode(named) if isinstance(named, bytes) else named}: {reason}"


def _told(text: str, status: int) -> int:
    """Say why on standard error; where that is full as well, the exit code is all there is."""
    from perfsuite.report.visible import terminal_text  # only where something is told

    try:
        print(f"perfsuite: {terminal_text(text)}", file=sys.stderr, flush=True)
    except OSError:
        drop(sys.stderr)
    return status


def _request(number: int) -> BaseException:
    """Return what unwinds all that is open, such as the device's lock and workers, for a signal."""
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)


@contextmanager
def _checked_outputs() -> Iterator[None]:
    """Make sure that what was printed has arrived; letters that the terminal's encoding lacks are written out.

    Raises `PerfsuiteError`: standard output is closed, or took not all of it; `BrokenPipeError`: its reader has gone.
    """
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (for as long as the process lives)
    if sys.stdout is None:
        raise PerfsuiteError("standard output is closed, so there is nowhere to answer; expected a terminal or a file")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        try:
            sys.stdout.flush()
        except OSError as error:
            drop(sys.stdout)
            if isinstance(error, BrokenPipeError):
                raise
            text = f"standard output cannot be written ({error.strerror}); the answer is not whole"
            raise PerfsuiteError(text) from None


def drop(stream: TextIO) -> None:
    """Let what a stream still holds go nowhere, so that Python does not fail on it when it ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
