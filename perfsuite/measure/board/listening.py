"""What the agent hears of its desk: requests, signs of life, a goodbye, or the end of the link."""

from __future__ import annotations

import queue
import select
from typing import Any

from perfsuite.errors import LinkError
from perfsuite.measure.board.ending import Ending
from perfsuite.measure.board.frames import Frames, read_chunk
from perfsuite.measure.board.hello import SILENCE_LIMIT_S, asked_silence_s
from perfsuite.measure.board.speaking import Speaker
from perfsuite.measure.board.told_errors import told_error


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
