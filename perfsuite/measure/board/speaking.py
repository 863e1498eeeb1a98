"""What the agent writes to its desk: whole messages, and never longer than it is worth waiting for."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from perfsuite.measure.board.frames import is_writable, packed_frame, write_frame

#: Longest to wait, at the end, for a desk that takes no more of a message.
LAST_WORD_S = 2.0


class Speaker:
    """The agent's output: its main thread tells and answers, the one that listens gives signs of life."""

    def __init__(self, descriptor: int, is_over: Callable[[], bool]) -> None:
        self._descriptor = descriptor
        self._is_over = is_over
        self._writing = threading.Lock()
        #: Whether the main thread writes, which ends by itself.
        self.is_busy = False
        #: Whether a message was left half written, so that nothing that follows can be read.
        self.is_cut = False

    def say(self, message: dict[str, Any]) -> None:
        """Write a message, from the main thread."""
        self.say_packed(packed_frame(message))

    def say_packed(self, frame: bytes) -> None:
        """Write a packed message; once all is over, only a while longer.

        Raises `OSError` where nobody reads, or a part of it was not taken.
        """
        self.is_busy = True
        try:
            with self._writing:
                self.is_cut = True
                write_frame(self._descriptor, frame, is_over=self._is_over, grace_s=LAST_WORD_S)
                self.is_cut = False
        finally:
            self.is_busy = False

    def pong(self) -> None:
        """Say that the agent is there, without waiting; an answer that is being written says so, too."""
        if self._writing.acquire(blocking=False):
            try:
                if not self.is_cut and is_writable(self._descriptor):
                    with suppress(OSError):
                        os.write(self._descriptor, packed_frame({"kind": "pong"}))
            finally:
                self._writing.release()
