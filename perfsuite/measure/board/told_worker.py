"""Processes that the program of a board tells lines and hears: workers that are led, and the eBPF helper."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from perfsuite.errors import LinkError, MeasurementError
from perfsuite.measure.board.frames import understood
from perfsuite.measure.launch import READY_MARK
from perfsuite.measure.plan import Plan, dump_plan, task_of

#: Asks the program there: kind, arguments, and how long its answer may take, s.
Ask = Callable[[str, Mapping[str, Any], float], Any]
#: Returns what a worker has measured, by a plan and how it has ended, or raises with its reason.
Payload = Callable[[Plan, Mapping[str, Any]], dict[str, Any]]

#: Most that is kept back until an answer is waited for, so that it crosses the link at once.
_MOST_HELD = 4 << 20
#: Longest to wait for the start of a process, and for its end.
_START_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What came of telling a process there something."""

    answer: str | None
    is_late: bool
    #: How it ended, where it has; and the looks beside it.
    outcome: Mapping[str, Any] | None
    looks: Any
    pid: int
    #: What it said last beside its answers.
    words: str

    @classmethod
    def from_plain(cls, plain: Any) -> Told:
        """Read what the program answers."""
        answer = plain["answer"]
        return cls(
            answer=None if answer is None else str(answer),
            is_late=bool(plain["is_late"]),
            outcome=plain["outcome"],
            looks=plain["looks"],
            pid=int(plain["pid"]),
            words=bytes(plain["words"]).decode(errors="replace"),
        )


class ToldProcess:
    """One process there that the program tells lines and hears; whoever starts it closes it."""

    def __init__(self, ask: Ask, kind: str, started: Mapping[str, Any]) -> None:
        """Let the program start it."""
        self._ask = ask
        self._lines: list[str] = []
        #: Its process there, once it has answered.
        self.pid = 0
        self._number = understood(kind, int, ask(kind, started, _START_LIMIT_S))

    def close(self) -> None:
        """Let the program end it; where there is none any more, it has ended with that."""
        if self._number:
            number, self._number = self._number, 0
            with suppress(LinkError):
                self._ask("end_worker", {"worker": number}, _START_LIMIT_S)

    def tell_all(self, limit_s: float, *, is_answered: bool, ends_input: bool) -> Told:
        """Send what is held back, and wait for the next answer or the end; `LinkError` where neither came."""
        limit_s = max(0.0, limit_s)
        lines, self._lines = self._lines, []
        asked = {
            "worker": self._number,
            "lines": lines,
            "is_answered": is_answered,
            "ends_input": ends_input,
            "limit_s": limit_s,
        }
        told = understood("tell_worker", Told.from_plain, self._ask("tell_worker", asked, limit_s))
        self.pid = told.pid
        return told


class ToldWorker(ToldProcess):
    """A worker there."""

    def __init__(
        self,
        ask: Ask,
        payload: Payload,
        plan: Plan,
        *,
        environment: Mapping[str, str],
        options: list[str],
        looks: Mapping[str, Any] | None = None,
        beside: Mapping[str, Any] | None = None,
    ) -> None:
        """Let the program start it, and take `looks` and do what `beside` names beside it."""
        self._payload, self._plan = payload, plan
        self.task = task_of(plan)
        #: What it said beside its answers, as far as that is known.
        self.words: list[str] = []
        self._ends_input = False
        self._outcome: Mapping[str, Any] | None = None
        #: The looks that were taken beside it, once it has ended.
        self.looks: Any = None
        asked = {"plan": dump_plan(plan), "environment": dict(environment), "options": options, "limit_s": 0.0}
        super().__init__(ask, "start_worker", {**asked, "looks": looks, "beside": beside})

    def tell(self, line: str, deadline_s: float) -> None:
        """Send a line, with those after it; `TimeoutError` where it has not read them before the deadline."""
        self._lines.append(line)
        if sum(map(len, self._lines)) > _MOST_HELD:
            self._told(deadline_s, is_answered=False)

    def answer(self, mark: str | None, deadline_s: Callable[[], float]) -> str | None:
        """Return its next answer, None once it has ended; `TimeoutError` beyond the deadline.

        Without a mark its end is waited for, which its input has before.
        """
        if mark not in (READY_MARK, None):
            raise MeasurementError(f"a worker on a board was to answer with {mark!r}; it does with {READY_MARK!r}")
        return self._told(deadline_s(), is_answered=mark is not None) if self._outcome is None else None

    @property
    def outcome(self) -> Mapping[str, Any]:
        """How it ended, with what was seen beside it; nothing where it has not."""
        return self._outcome or {}

    def end_input(self) -> None:
        """Say that nothing more is asked; it goes with what is waited for next."""
        self._ends_input = True

    def payload(self) -> dict[str, Any]:
        """Return what it has measured, once it has ended, or raise with its reason."""
        if self._outcome is None:
            raise MeasurementError(
                f"the worker for '{self.task}' has not ended within {_START_LIMIT_S:.0f} s; run again"
            )
        return self._payload(self._plan, self._outcome)

    def early_end(self, before: str) -> MeasurementError:
        """Return why it ended too early: its own reason, or else what it ended before."""
        try:
            self._payload(self._plan, self._outcome or {})
        except MeasurementError as error:
            return error
        return MeasurementError(f"the worker for '{self.task}' ended before {before}")

    def _told(self, deadline_s: float, *, is_answered: bool) -> str | None:
        told = self.tell_all(deadline_s - time.monotonic(), is_answered=is_answered, ends_input=self._ends_input)
        self._outcome, self.looks = told.outcome, told.looks
        self.words = told.words.splitlines()
        if told.is_late:
            raise TimeoutError
        return told.answer


class ToldRecorder(ToldProcess):
    """The eBPF helper at work there, in the way of `HelperPipes`."""

    def __init__(self, ask: Ask, *, program: str, arguments: list[str], log: str) -> None:
        """Let the program start it; its log is a file in the folder of the run."""
        self._answers: list[str] = []
        self._words = ""
        self._status: int | None = None
        super().__init__(ask, "start_recorder", {"program": program, "arguments": arguments, "log": log})

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
        self.close()
        self._status = -9 if self._status is None else self._status

    def _told(self, limit_s: float, *, ends_input: bool) -> Told:
        told = self.tell_all(limit_s, is_answered=not ends_input, ends_input=ends_input)
        self._words = told.words
        self._answers += [] if told.answer is None else [told.answer]
        self._status = None if told.outcome is None else _status(told.outcome)
        if told.is_late:
            raise TimeoutError
        return told


def _status(outcome: Mapping[str, Any]) -> int:
    code, number = outcome["code"], outcome["signal"]
    return int(code) if code is not None else -int(number or 9)
