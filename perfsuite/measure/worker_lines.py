"""A worker that is heard, and told, line by line while it runs: no wait is without a limit."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from perfsuite.device.work_folder import work_folder
from perfsuite.errors import MeasurementError
from perfsuite.measure.launch import (
    KEPT_BYTES,
    await_descriptor,
    kill_worker,
    open_publication,
    read_record,
    refuse_killed,
    start_worker,
)
from perfsuite.measure.plan import Plan, task_of

_CHUNK_BYTES = 65536
#: Most that is waited for of a line without an end.
_MOST_LINE_BYTES = 1 << 20
#: Lines that are kept for a worker's last words.
_KEPT_LINES = 100
#: Longest to wait for a worker to end that has closed its output.
_END_LIMIT_S = 10.0


class WaitingWorker:
    """A worker that waits for lines and answers them, until its input ends; whoever starts it closes it."""

    def __init__(self, plan: Plan, folder: Path, extra_environment: Mapping[str, str]) -> None:
        """Start a worker whose plan and record are in `folder`, as `start_worker` does."""
        self._publication = open_publication(plan)
        self._is_complete = False
        self.task = task_of(plan)
        try:
            self.process = start_worker(
                plan, folder, extra_environment, stdin=subprocess.PIPE, publication=self._publication
            )
        except BaseException:
            self._end_publication()
            raise
        #: What it said beside its answers.
        self.words: deque[str] = deque(maxlen=_KEPT_LINES)
        self._plan, self._folder = plan, folder
        self._lines = WorkerLines(self.process)

    @property
    def pid(self) -> int:
        """Its process."""
        return self.process.pid

    def tell(self, line: str, deadline_s: float) -> None:
        """Send a line, also to a worker that has died, as its output says better; `TimeoutError` as `WorkerLines`."""
        with contextlib.suppress(BrokenPipeError):
            self._lines.send_line(line, deadline_s)

    def answer(self, mark: str | None, deadline_s: Callable[[], float]) -> str | None:
        """Return the next line with a mark, None once the output is closed; `TimeoutError` beyond a line's deadline."""
        while (line := self._lines.next_line(deadline_s())) is not None and not (mark and line.startswith(mark)):
            self.words.append(line[:KEPT_BYTES])
        return line

    def end_input(self) -> None:
        """Say that nothing more is asked."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def payload(self) -> dict[str, Any]:
        """Return what a worker that has closed its output has measured, or raise with its reason or last words."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_END_LIMIT_S)
        output = "\n".join(self.words)
        refuse_killed(self.process.returncode, output, self.task)
        payload = read_record(self._plan, self._folder, output)
        self._is_complete = True
        self._end_publication()
        return payload

    def early_end(self, before: str) -> MeasurementError:
        """Return why a worker ended too early: its own reason, or else what it ended before."""
        try:
            self.payload()
        except MeasurementError as error:
            return error
        return MeasurementError(f"the worker for '{self.task}' ended before {before}")

    def close(self) -> None:
        """Stop the worker and its children, and tell who watches."""
        kill_worker(self.process)
        self._end_publication()

    def _end_publication(self) -> None:
        publication, self._publication = self._publication, None
        if publication is not None:
            publication.close(is_complete=self._is_complete)


@contextlib.contextmanager
def waiting_worker(plan: Plan, environment: Mapping[str, str]) -> Iterator[WaitingWorker]:
    """Start a worker in a folder of its own, and end it with the context."""
    with work_folder() as folder, contextlib.closing(WaitingWorker(plan, folder, environment)) as worker:
        yield worker


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
            if len(self._unread) > _MOST_LINE_BYTES:
                self._unread = self._unread[-KEPT_BYTES:]
            self._lines.extend(line.decode(errors="replace") for line in lines)
        return self._lines.popleft()

    def send_line(self, line: str, deadline_s: float) -> None:
        """Tell the worker a line; `TimeoutError` beyond the deadline, `BrokenPipeError` where nobody reads."""
        unsent = memoryview(f"{line}\n".encode())
        os.set_blocking(self._input.fileno(), False)
        while unsent:
            await_descriptor(self._input.fileno(), selectors.EVENT_WRITE, deadline_s)
            unsent = unsent[os.write(self._input.fileno(), unsent[:_CHUNK_BYTES]) :]

    def _read(self, deadline_s: float) -> bytes:
        """Read what there is, empty at the end."""
        await_descriptor(self._output.fileno(), selectors.EVENT_READ, deadline_s)
        return os.read(self._output.fileno(), _CHUNK_BYTES)
