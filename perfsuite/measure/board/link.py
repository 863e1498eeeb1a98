"""The desk's end of a link to a program: what is asked of it, and what it answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from perfsuite.errors import LinkError, PerfsuiteError
from perfsuite.measure.board.frames import raised_again, understood
from perfsuite.measure.board.holding import Held
from perfsuite.measure.board.pipes import MOST_MESSAGES, Lost, Pipes

#: Most that is told of a note, characters.
_NOTE_LENGTH = 500


class LostLinkError(LinkError):
    """The link is gone, and why as far as the link itself knows; the process that carried it may know more."""

    def __init__(self, why: str, *, is_slow: bool = False, has_ended: bool = False) -> None:
        super().__init__(why)
        #: Whether the program is there and has no answer, so that asking again would take as long.
        self.is_slow = is_slow
        #: Whether the process that carried the link has ended, or is about to.
        self.has_ended = has_ended


class RefusedError(LinkError):
    """The program's suite is another than the desk's."""

    def __init__(self, versions: Any) -> None:
        super().__init__("the program there is of another suite")
        #: What the program has said of its own.
        self.versions = versions


class MessageLink:
    """One program, which is asked for one thing after the other."""

    def __init__(self, pipes: Pipes, *, note: Callable[[str], None]) -> None:
        self.pipes = pipes
        self.tell = note
        self._n_asked = 0
        #: Whether somebody has broken off a question, which the program is still at.
        self.is_interrupted = False

    def ask(
        self, kind: str, arguments: Mapping[str, Any], *, limit_s: float, hear: Callable[[Any], None] | None = None
    ) -> Any:
        """Ask the program for something, and wait for its answer; `hear` is given what is delivered before it.

        Raises `LostLinkError` where the link is lost, or there is no answer in time: the program ends itself then;
        `RefusedError` where the program does not serve this desk; `PerfsuiteError` as the program raised it.
        """
        try:
            return self._answer(kind, arguments, time.monotonic() + limit_s, limit_s, hear)
        except PerfsuiteError:
            raise
        except BaseException:
            self.is_interrupted = True
            raise

    def _answer(
        self,
        kind: str,
        arguments: Mapping[str, Any],
        until: float,
        limit_s: float,
        hear: Callable[[Any], None] | None,
    ) -> Any:
        self._n_asked += 1
        self.pipes.send({"kind": kind, "id": self._n_asked, "arguments": dict(arguments)}, until)
        n_left = MOST_MESSAGES
        while n_left:
            message = self._next(until - time.monotonic(), f"it did not answer {kind!r} within {limit_s:.0f} s")
            if hear is not None and message["kind"] == "live" and message.get("id") == self._n_asked:
                hear(message.get("delivery"))
                continue
            n_left -= 1
            if message["kind"] == "refused":
                raise RefusedError(message.get("versions"))
            if message["kind"] == "note":
                self.tell(" ".join(str(message.get("text")).split())[:_NOTE_LENGTH])
            elif message.get("id") == self._n_asked and message["kind"] == "answer":
                return message.get("value")
            elif message.get("id") == self._n_asked and message["kind"] == "error":
                raise raised_again(message.get("error"))
        raise self._given_up(f"it said {MOST_MESSAGES} things, and none of them answers {kind!r}")

    def end(self, *, limit_s: float) -> Held | None:
        """Tell the program to end, and wait until it has restored the board; what it came to, None where unknown.

        Raises `PerfsuiteError` where it could not restore something; or the link was lost, so that nobody knows.
        """
        try:
            until = time.monotonic() + limit_s
            self.pipes.send({"kind": "bye"}, until)
            if self.pipes.is_cut:  # by whoever broke off a message: the end of its input is the program's goodbye
                self.pipes.close_outgoing()
            while True:
                message = self._next(until - time.monotonic(), f"it did not end within {limit_s:.0f} s")
                if message["kind"] == "ended":
                    if message.get("error"):
                        raise raised_again(message["error"])
                    return understood("held", Held.from_plain, message["held"]) if message.get("held") else None
        finally:
            self.pipes.cut()

    def _next(self, left_s: float, complaint: str) -> dict[str, Any]:
        message = self.pipes.received(left_s)
        if message is None:
            raise self._given_up(complaint, is_slow=True)
        if isinstance(message, Lost):
            raise LostLinkError(message.why, has_ended=message.has_ended)
        return message

    def _given_up(self, why: str, *, is_slow: bool = False) -> LostLinkError:
        self.pipes.give_up(Lost(why=why))
        return LostLinkError(why, is_slow=is_slow)
