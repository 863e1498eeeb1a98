"""What the agent hears of its desk: requests, signs of life, a goodbye, or the end of the link."""

from __future__ import annotations

import os
import queue
import select
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from perfsuite.errors import LinkError
from perfsuite.measure.board.ending import Ending
from perfsuite.measure.board.frames import Frames, is_writable, packed_frame, read_chunk, told_error, write_frame
from perfsuite.measure.board.hello import SILENCE_LIMIT_S, asked_silence_s

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

    def tell(self, message: Mapping[str, Any]) -> None:
        """Write a message from another thread than the main one, which meanwhile waits for something."""
        with self._writing:
            self.is_cut = True
            write_frame(self._descriptor, packed_frame(message), is_over=self._is_over, grace_s=LAST_WORD_S)
            self.is_cut = False

    def pong(self) -> None:
        """Say that the agent is there, without waiting; an answer that is being written says so, too."""
        if self._writing.acquire(blocking=False):
            try:
                if not self.is_cut and is_writable(self._descriptor):
                    with suppress(OSError):
                        os.write(self._descriptor, packed_frame({"kind": "pong"}))
            finally:
                self._writing.release()


class Listener:
    """The agent's input, in a thread of its own: without it nobody would notice the end of the link."""

    def __init__(self, incoming: int, speaker: Speaker, ending: Ending) -> None:
        self._incoming = incoming
        self._speaker = speaker
        self._ending = ending
        self._silence_limit_s = SILENCE_LIMIT_S
        #: What the desk asks for.
        self.requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def listen(self) -> None:
        """Take what the desk says, until it ends, which ends the agent."""
        reason = "it hears no more of the desk"
        try:
            reason = self._heard_out()
        except LinkError as error:
            reason = str(error)
        except Exception as error:
            reason = f"what the desk said cannot be taken ({told_error(error)['text']})"
        finally:
            self._ending.come(reason)

    def _heard_out(self) -> str:
        """Take what the desk says, and return why there is no more of it; "" where it said so itself."""
        frames = Frames()
        while True:
            heard, _, _ = select.select([self._incoming], [], [], self._silence_limit_s)
            if not heard:
                return f"the desk has said nothing for {self._silence_limit_s:g} s"
            chunk = read_chunk(self._incoming)
            if not chunk:
                return f"the link ended{' in the middle of a message' if frames.is_cut else ''}"
            for message in frames.messages(chunk):
                if message["kind"] == "bye":
                    return ""
                self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        kind = message["kind"]
        if kind == "ping":
            self._speaker.pong()
        elif isinstance(message.get("arguments"), dict) and isinstance(message.get("id"), int):
            if kind == "hello":
                self._silence_limit_s = asked_silence_s(message["arguments"]) or SILENCE_LIMIT_S
            self.requests.put(message)
        else:
            raise LinkError(f"a message {kind!r} has no arguments: garbage")
