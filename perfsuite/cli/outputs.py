"""Standard output and standard error that may be full, closed, or short of letters."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

from perfsuite.errors import PerfsuiteError


class _CheckedOutput:
    """Standard output, which says as any other mistake that it takes nothing more."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def buffer(self) -> _CheckedOutput:
        """Return the same for bytes."""
        return _CheckedOutput(self._stream.buffer)

    def write(self, content: Any) -> int:
        """Write; that a reader has gone is left to the caller."""
        try:
            return int(self._stream.write(content))
        except OSError as error:
            raise _refused(error) from None

    def flush(self) -> None:
        """Hand on what is kept."""
        try:
            self._stream.flush()
        except OSError as error:
            raise _refused(error) from None


@contextmanager
def checked_outputs() -> Iterator[None]:
    """Make sure that what was printed has arrived; an output that is closed or full is a mistake like any other.

    Raises `PerfsuiteError`: standard output is closed, or could not be written.
    """
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (for as long as the process lives)
    if sys.stdout is None:
        raise PerfsuiteError("standard output is closed, so there is nowhere to answer; expected a terminal or a file")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # letters that the terminal's encoding lacks
    real = sys.stdout
    sys.stdout = cast(TextIO, _CheckedOutput(real))
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    finally:
        sys.stdout = real


def drop(stream: TextIO) -> None:
    """Let what a stream still holds go nowhere, so that Python does not fail on it when it ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _refused(error: OSError) -> Exception:
    if isinstance(error, BrokenPipeError):
        return error
    drop(sys.stdout)
    return PerfsuiteError(f"standard output cannot be written ({error.strerror}); the answer is not whole")
