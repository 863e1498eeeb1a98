"""The eBPF helper at work on a board, in the way of `HelperPipes`."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from perfsuite.errors import LinkError
from perfsuite.measure.board.frames import understood
from perfsuite.measure.board.told_worker import Ask, Told

_START_LIMIT_S = 60.0


class ToldRecorder:
    """One helper there, which the program tells lines and hears."""

    def __init__(self, ask: Ask, *, program: str, arguments: list[str], log: str) -> None:
        """Let the program start it; its log is a file in the folder of the run."""
        self._ask = ask
        self.pid = 0
        self._lines: list[str] = []
        self._answers: list[str] = []
        self._words = ""
        self._status: int | None = None
        asked = {"program": program, "arguments": arguments, "log": log}
        self._number = understood("start_recorder", int, ask("start_recorder", asked, _START_LIMIT_S))

    @property
    def said(self) -> bytes:
        """Return what it has said: its answers stand behind all else."""
        return "\n".join((self._words.rstrip("\n"), *self._answers, "")).encode()

    def tell(self, line: str) -> None:
        """Send it a line; BrokenPipeError where it is known to have ended."""
        if self._status is not None:
            raise BrokenPipeError
        self._lines.append(line)

    def listen(self, limit_s: float) -> bool:
        """Wait for its next answer."""
        return self._status is None and self._told(limit_s, ends_input=False).answer is not None

    def has_ended(self) -> bool:
        """Whether it is known to have ended."""
        return self._status is not None

    def end(self, limit_s: float) -> int:
        """Close its input, and return what it ends with."""
        try:
            if self._status is None:
                self._told(limit_s, ends_input=True)
        finally:
            self.kill()
        return -1 if self._status is None else self._status

    def kill(self) -> None:
        """End it at once, as far as there is a link; without one it ends with that."""
        if self._number:
            number, self._number = self._number, 0
            with suppress(LinkError):
                self._ask("end_worker", {"worker": number}, _START_LIMIT_S)
            self._status = -9 if self._status is None else self._status

    def _told(self, limit_s: float, *, ends_input: bool) -> Told:
        limit_s = max(0.0, limit_s)
        lines, self._lines = self._lines, []
        asked = {"worker": self._number, "lines": lines, "is_answered": not ends_input, "limit_s": limit_s}
        told = understood(
            "tell_worker", Told.from_plain, self._ask("tell_worker", {**asked, "ends_input": ends_input}, limit_s)
        )
        self.pid, self._words = told.pid, told.words
        self._answers += [] if told.answer is None else [told.answer]
        self._status = None if told.outcome is None else _status(told.outcome)
        if told.is_late:
            raise TimeoutError
        return told


def _status(outcome: Any) -> int:
    code, number = outcome["code"], outcome["signal"]
    return int(code) if code is not None else -int(number or 9)
