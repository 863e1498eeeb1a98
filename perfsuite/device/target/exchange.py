"""What passes through the pipes of a process here: input, output and errors at once, all of them within bounds."""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

#: Most that is kept of a command's errors, the last of them.
ERRORS_LIMIT_BYTES = 1 << 20

_CHUNK_BYTES = 1 << 17

#: How long a command is given to end once its input has ended, before the link's process here is killed.
_PATIENCE_S = 2.0

#: Takes the next piece of a command's output.
Take = Callable[[bytes], object]


class Exchange:
    """One process and its pipes.

    Its input stays open until it has ended: the end of the input is what tells a device that nobody waits any more.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], source: IO[bytes], size_bytes: int, *, patience_s: float | None = None
    ) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._pipes = (process.stdin, process.stdout, process.stderr)
        self._source = source
        self._left_bytes = size_bytes
        self._patience_s = _PATIENCE_S if patience_s is None else patience_s
        self._unsent = b""
        self._errors = bytearray()

    def carry(self, take: Take, limit_s: float, *, silence_limit_s: float = math.inf) -> bytes:
        """Send so many bytes of the source, give the output on, and return the last of the errors.

        Whatever `take` raises ends the process. Raises `TimeoutError` past the limit, and where nothing passes for
        longer than that of silence; `OSError` where the source cannot be read or has become shorter.
        """
        end = time.monotonic() + limit_s
        try:
            with self._selected(take) as selector:
                if self._left_bytes:
                    os.set_blocking(self._pipes[0].fileno(), False)
                    selector.register(self._pipes[0], selectors.EVENT_WRITE, self._send)
                _pass_until(selector, end, silence_limit_s)
            self._await(end)
        finally:
            self._hang_up()
        return bytes(self._errors)

    @contextmanager
    def _selected(self, take: Take) -> Iterator[selectors.BaseSelector]:
        with selectors.DefaultSelector() as selector:
            selector.register(self._pipes[1], selectors.EVENT_READ, lambda pipe: _receive(pipe, take))
            selector.register(self._pipes[2], selectors.EVENT_READ, lambda pipe: _receive(pipe, self._keep))
            yield selector

    def _keep(self, chunk: bytes) -> None:
        self._errors += chunk
        if len(self._errors) > ERRORS_LIMIT_BYTES:
            del self._errors[:-ERRORS_LIMIT_BYTES]

    def _send(self, pipe: IO[bytes]) -> bool:
        """Send what the pipe takes; say whether more is to come."""
        if not self._unsent:
            self._unsent = self._source.read(min(_CHUNK_BYTES, self._left_bytes))
            if not self._unsent:
                raise OSError("it became shorter while it was sent")
        try:
            sent = os.write(pipe.fileno(), self._unsent)
        except BlockingIOError:
            return True
        except BrokenPipeError:
            return False
        self._unsent = self._unsent[sent:]
        self._left_bytes -= sent
        return self._left_bytes > 0

    def _await(self, end: float) -> None:
        try:
            self._process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise TimeoutError from None

    def _hang_up(self) -> None:
        """End what still runs: there, by the end of its input, and here."""
        self._pipes[0].close()
        try:
            if self._process.poll() is None:
                self._drain()
        finally:
            if self._process.poll() is None:
                self._process.kill()
            self._process.wait()
            for pipe in self._pipes[1:]:
                pipe.close()

    def _drain(self) -> None:
        end = time.monotonic() + self._patience_s
        with contextlib.suppress(TimeoutError), self._selected(lambda chunk: None) as selector:
            _pass_until(selector, end)
            self._await(end)


def _pass_until(selector: selectors.BaseSelector, end: float, silence_limit_s: float = math.inf) -> None:
    """Serve the pipes until the output and the errors have ended."""
    while any(key.events == selectors.EVENT_READ for key in selector.get_map().values()):
        ready = selector.select(max(0.0, min(end - time.monotonic(), silence_limit_s)))
        if not ready or time.monotonic() >= end:
            raise TimeoutError
        for key, _ in ready:
            if not key.data(key.fileobj):
                selector.unregister(key.fileobj)


def _receive(pipe: IO[bytes], take: Take) -> bool:
    """Give on what is there; say whether more may come."""
    chunk = os.read(pipe.fileno(), _CHUNK_BYTES)
    if chunk:
        take(chunk)
    return bool(chunk)
