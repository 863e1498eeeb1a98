"""The pipes of the process that reaches a program: messages go out and come in, and a link that is lost is noticed."""

from __future__ import annotations

import os
import queue
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from perfsuite.errors import LinkError
from perfsuite.measure.board.frames import Frames, StuckError, is_writable, packed_frame, read_chunk, write_frame
from perfsuite.measure.board.hello import PREAMBLE

#: Most that a login may print before the program begins, and most that is kept of the program's errors, bytes.
_MOST_BYTES = 1 << 16

#: Longest to wait for a process to end once its link is lost.
_END_LIMIT_S = 5.0

#: Most messages that are kept until somebody asks for them.
MOST_MESSAGES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """What stands behind the last message where the link ended."""

    why: str
    #: Whether the process that carried the link has ended, or is about to.
    has_ended: bool = False


class Pipes(Protocol):
    """What carries messages to a program, and its answers."""

    is_cut: bool
    has_begun: bool

    @property
    def errors(self) -> bytes:
        """What the program, or what carries the link, has written to its errors."""

    def send(self, message: Mapping[str, Any], until: float) -> None:
        """Write a message."""

    def received(self, left_s: float) -> dict[str, Any] | Lost | None:
        """Return the next message, or the end of the link, whoever asks and however often; None where none comes."""

    def give_up(self, lost: Lost) -> None:
        """Let the next one who asks learn that the link is lost."""

    def cut(self) -> None:
        """End what carries the link."""

    def close_outgoing(self) -> None:
        """Close the program's input."""

    def exit_status(self) -> int | None:
        """Return how what carried the link has ended; None where it is still there."""


class ProcessPipes:
    """Input, output and errors of the process that carries a link; threads of its own read output and errors."""

    def __init__(self, process: subprocess.Popen[bytes], *, ping_s: float, silence_limit_s: float) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._ping_s, self._silence_limit_s = ping_s, silence_limit_s
        self._outgoing, self._incoming, self._told = (
            each.fileno() for each in (process.stdin, process.stdout, process.stderr)
        )
        self._messages: queue.SimpleQueue[dict[str, Any] | Lost] = queue.SimpleQueue()
        self._writing = threading.Lock()
        self._over = threading.Event()
        self._is_closed = False
        #: Whether a message was left half written, so that nothing can follow it.
        self.is_cut = False
        self._heard_s = time.monotonic()
        self._errors = bytearray()
        #: Whether the program has begun to speak.
        self.has_begun = False
        self._threads = [
            threading.Thread(target=each, name=f"perfsuite-{each.__name__.strip('_')}", daemon=True)
            for each in (self._listen, self._keep_errors, self._ping)
        ]
        for thread in self._threads:
            thread.start()

    def send(self, message: Mapping[str, Any], until: float) -> None:
        """Write a message; where nobody reads any more the listening thread finds the end of the link."""
        frame = packed_frame(message)
        with self._writing:
            if self._is_closed or self.is_cut:
                return
            self.is_cut = True
            try:
                write_frame(self._outgoing, frame, is_over=lambda: self._over.is_set() or time.monotonic() > until)
                self.is_cut = False
            except StuckError as error:
                self._lose(f"it does not read: {error}")
            except OSError:
                pass

    def received(self, left_s: float) -> dict[str, Any] | Lost | None:
        """Return the next message, or the end of the link, whoever asks and however often; None where none comes."""
        try:
            message = self._messages.get(timeout=left_s) if left_s > 0 else None
        except queue.Empty:
            return None
        if isinstance(message, Lost):
            self.give_up(message)
        return message

    def give_up(self, lost: Lost) -> None:
        """Let the next one who asks learn that the link is lost."""
        self._messages.put(lost)

    def cut(self) -> None:
        """End the process that carries the link; the program hears of it by the end of its input."""
        self._over.set()
        self.close_outgoing()
        process = self._process
        for wait_s, end in ((1.0, process.terminate), (_END_LIMIT_S, process.kill), (_END_LIMIT_S, None)):
            with suppress(subprocess.TimeoutExpired):
                process.wait(wait_s)
                break
            if end is not None:
                end()
        for thread, pipe in zip(self._threads, (process.stdout, process.stderr, None), strict=True):
            thread.join(_END_LIMIT_S)
            if pipe is not None and not thread.is_alive():  # what it reads from must not become another file
                pipe.close()

    def close_outgoing(self) -> None:
        """Close the program's input; a thread that is stuck writing to it is freed by the end of the process."""
        if not self._writing.acquire(timeout=1.0):
            self._process.kill()
            self._writing.acquire()
        try:
            self._is_closed = True
            with suppress(OSError):
                assert self._process.stdin is not None
                self._process.stdin.close()
        finally:
            self._writing.release()

    def exit_status(self) -> int | None:
        """Return how the process that carried the link has ended; None where it is still there."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(_END_LIMIT_S)
        return None

    @property
    def errors(self) -> bytes:
        """What the program, or what carries the link, has written to its errors."""
        return bytes(self._errors)

    def _listen(self) -> None:
        """Take what comes, until it ends; whatever carries a link that is lost is not left running."""
        try:
            self._lose(self._heard_out(), has_ended=True)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(2 * _END_LIMIT_S)  # how it ends says why
        except LinkError as error:
            self._lose(str(error))
        finally:
            self._kill()

    def _heard_out(self) -> str:
        """Take what comes, and return why no more does."""
        frames, before = Frames(), b""
        while chunk := read_chunk(self._incoming):
            self._heard_s = time.monotonic()
            if not self.has_begun:
                before += chunk
                _, found, chunk = before.partition(PREAMBLE)
                self.has_begun = bool(found)
                if not found and len(before) > _MOST_BYTES:
                    raise LinkError(f"no perfsuite answers there: {len(before)} bytes came that are none of its")
            for message in frames.messages(chunk) if self.has_begun else ():
                self._take(message)
        return f"the link ended{' in the middle of a message' if frames.is_cut else ''}"

    def _take(self, message: dict[str, Any]) -> None:
        if message["kind"] == "pong":
            return
        if self._messages.qsize() >= MOST_MESSAGES:
            raise LinkError(f"it said {MOST_MESSAGES} things that nobody asked for: garbage")
        self._messages.put(message)

    def _keep_errors(self) -> None:
        """Keep the last of what is written to the errors, so that whoever writes them is never held up."""
        while chunk := read_chunk(self._told):
            self._errors += chunk
            del self._errors[:-_MOST_BYTES]

    def _ping(self) -> None:
        """Look how long the program has been silent, and say now and then, without waiting, that the desk is there."""
        while not self._over.wait(self._ping_s):
            if time.monotonic() - self._heard_s > self._silence_limit_s:
                self._lose(f"it has said nothing for {self._silence_limit_s:g} s")
                self._kill()
            elif self._writing.acquire(blocking=False):  # a message that is being written says so, too
                try:
                    if not (self._is_closed or self.is_cut) and is_writable(self._outgoing):
                        with suppress(OSError):
                            os.write(self._outgoing, packed_frame({"kind": "ping"}))
                finally:
                    self._writing.release()

    def _kill(self) -> None:
        """Let nobody go on with a link that is lost."""
        with suppress(OSError):
            self._process.kill()

    def _lose(self, why: str, *, has_ended: bool = False) -> None:
        self._over.set()
        self._messages.put(Lost(why=why, has_ended=has_ended))
