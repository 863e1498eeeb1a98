"""What a worker says while it runs, line by line, and what it is told: no wait is without a limit."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections import deque

_CHUNK_BYTES = 65536


class WorkerLines:
    """The two pipes of a worker that was started with both."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Take the pipes; nothing else may read or write them."""
        assert process.stdin is not None
        assert process.stdout is not None
        self._input, self._output = process.stdin, process.stdout
        self._lines: deque[str] = deque()
        self._unread = b""

    def next_line(self, deadline_s: float) -> str | None:
        """Return the next line, None once the worker has closed its output; `TimeoutError` beyond the deadline.

        The deadline is one of ``time.monotonic``. Words after the last line's end are a line as well.
        """
        while not self._lines:
            chunk = self._read(deadline_s)
            if not chunk and not self._unread:
                return None
            *lines, self._unread = (self._unread + (chunk or b"\n")).split(b"\n")
            self._lines.extend(line.decode(errors="replace") for line in lines)
        return self._lines.popleft()

    def send_line(self, line: str, deadline_s: float) -> None:
        """Tell the worker a line; `TimeoutError` beyond the deadline, `BrokenPipeError` where nobody reads."""
        unsent = memoryview(f"{line}\n".encode())
        os.set_blocking(self._input.fileno(), False)
        while unsent:
            _await(self._input.fileno(), selectors.EVENT_WRITE, deadline_s)
            unsent = unsent[os.write(self._input.fileno(), unsent[:_CHUNK_BYTES]) :]

    def _read(self, deadline_s: float) -> bytes:
        """Read what there is, empty at the end."""
        _await(self._output.fileno(), selectors.EVENT_READ, deadline_s)
        return os.read(self._output.fileno(), _CHUNK_BYTES)


def _await(descriptor: int, event: int, deadline_s: float) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, event)
        if not selector.select(max(0.0, deadline_s - time.monotonic())):
            raise TimeoutError
