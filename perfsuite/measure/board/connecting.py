"""Starting the program of a board, and saying in one line why there is no link to it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, TypeVar

from perfsuite.device.target.protocol import last_line
from perfsuite.errors import DeviceError, LinkError, LockedError, PerfsuiteError
from perfsuite.measure.board.frames import understood
from perfsuite.measure.board.hello import PING_S, SILENCE_LIMIT_S, Hello, refusal
from perfsuite.measure.board.holding import Held
from perfsuite.measure.board.link import LostLinkError, MessageLink, RefusedError
from perfsuite.measure.board.pipes import Pipes
from perfsuite.measure.board.program import Program

_Answer = TypeVar("_Answer")

#: What begins the program's own last words.
OWN_WORDS = "perfsuite: "


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkLimits:
    """How long is waited for what, s."""

    #: Between two signs of life, and how much silence is too much.
    ping_s: float = PING_S
    silence_s: float = SILENCE_LIMIT_S
    #: For a short answer, a program that starts on a slow board included.
    answer_s: float = 120.0
    #: For weights that are written or checked there, and for a file that is put.
    weights_s: float = 3600.0
    #: For what a plan takes beyond a worker's own limit.
    beyond_worker_s: float = 60.0
    #: For a link that was lost to come back, and between two tries; 0 does not try.
    reconnect_s: float = 60.0
    retry_s: float = 2.0
    #: For the program to restore the board at the end.
    end_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Connecting:
    """How a board's program is started, and what is stated there first."""

    #: The device's, for messages and for ``perfsuite devices setup NAME``.
    name: str
    hello: Hello
    #: Is told what is waited for.
    tell: Callable[[str], None]
    limits: LinkLimits = field(default_factory=LinkLimits)

    #: Where the board's files can be read here; None where they are asked for.
    root: ClassVar[Path | None] = None

    def connected(self) -> Program:
        """Start the program, and let it take the board.

        Raises `LinkError` where it cannot be reached; `DeviceError` where the suite is not there, or another version of
        it; `LockedError` where somebody else has it.
        """
        limits, pipes, hello = self.limits, self.started(), self.hello
        link = MessageLink(pipes, note=self.tell)
        waits_s = (hello.claim.wait_s if hello.claim else 0.0) + hello.conditions.cooling_limit_s
        try:
            welcome = link.ask("hello", hello.to_plain(), limit_s=limits.answer_s + waits_s)

            def greeted(_: object) -> Program:
                return Program(
                    link,
                    welcome,
                    conditions=hello.conditions,
                    answer_s=limits.answer_s,
                    beyond_worker_s=limits.beyond_worker_s,
                    root=self.root,
                )

            program = understood("hello", greeted, welcome)
            program.begin()
        except LostLinkError as lost:
            raise self.explained(link, lost) from None
        except RefusedError as refused:
            pipes.cut()
            told = refusal(hello.to_plain(), refused.versions)
            raise DeviceError(f"{self.name}: {told}; {self.renewal}") from None
        except BaseException:
            pipes.cut()
            raise
        return program

    def started(self) -> Pipes:
        """Start the program, and return the pipes to it."""
        raise NotImplementedError

    def explained(self, link: MessageLink, lost: LostLinkError) -> PerfsuiteError:
        """Return the error that says why a link is lost, by what the process that carried it has left."""
        status = link.pipes.exit_status() if lost.has_ended else None
        link.pipes.cut()
        own = last_line(link.pipes.errors.decode("utf-8", "replace"))
        if own.startswith(OWN_WORDS):
            return LinkError(f"{self.where}: the program there ended: {own.removeprefix(OWN_WORDS)}")
        if status is None:
            return LinkError(f"{self.where}: the link was lost: {lost}")
        return LinkError(f"{self.where}: the program there was ended from outside ({lost}, status {status})")

    @property
    def where(self) -> str:
        """The board, for messages."""
        return self.name

    @property
    def renewal(self) -> str:
        """What brings the program up to date."""
        return f"run 'perfsuite devices setup {self.name}'"

    def connected_again(self, error: LinkError) -> Program:
        """Reach the board once more after a link was lost, for as long as the limit lets.

        Raises `LinkError` where it did not come back: why the link was lost, and what is so still; `DeviceError` where
        the suite is not there any more.
        """
        self.tell(f"{error}; trying to reach it again for {self.limits.reconnect_s:.0f} s")
        since = time.monotonic()
        while True:
            try:
                return self.connected()
            except (LinkError, LockedError) as again:
                tried_s = time.monotonic() - since
                if tried_s + self.limits.retry_s > self.limits.reconnect_s:
                    told = f"; after {tried_s:.0f} s still: {again}" if str(again) != str(error) else ""
                    raise LinkError(f"{error}{told}") from None
            time.sleep(self.limits.retry_s)


@dataclass(kw_only=True)
class KeptLink:
    """The programs of a board, one after the other; the first is started when something is asked of it."""

    connecting: Connecting
    #: Looks at a program that answers in the place of one before; a `PerfsuiteError` refuses it.
    recognise: Callable[[Program], None] = lambda _: None
    #: What a reader of the run should know of it.
    notes: list[str] = field(default_factory=list)
    #: How many links were lost so far.
    n_lost: int = 0
    _program: Program | None = None
    #: Why there is no link any more, once it did not come back.
    _gone: PerfsuiteError | None = None

    @property
    def is_open(self) -> bool:
        """Whether a program is there to be asked; one that was not recognised is only to be ended."""
        return self._program is not None and self._gone is None

    def has(self, program: Program) -> bool:
        """Whether it is this program that would be asked."""
        return self._program is program

    def opened(self) -> Program:
        """Return the program; it is started where it is not yet. Raises as `Connecting.connected`."""
        if self._gone is not None:
            raise self._gone
        if self._program is None:
            self._program = self.connecting.connected()
        return self._program

    def use(self, ask: Callable[[], _Answer]) -> _Answer:
        """Ask the program; where the link is lost on the way, once more over a new one.

        Raises `LinkError` where the link is lost, and did not come back; so it is for all that is asked from then on;
        `PerfsuiteError` as the program raised it, or `Connecting.connected`.
        """
        try:
            return ask()
        except LostLinkError as lost:
            self._reconnect(self._why_lost(lost), is_slow=lost.is_slow)
        try:
            return ask()
        except LostLinkError as lost:
            raise self._ended(self._why_lost(lost)) from None

    def end(self) -> Held | None:
        """Let the program restore the board and end, and return what it said last; None where it said nothing.

        Raises `PerfsuiteError` where something could not be restored, or nobody knows: the link was lost.
        """
        program, self._program = self._program, None
        if program is None:
            return None
        try:
            return program.end(limit_s=self.connecting.limits.end_s)
        except LostLinkError as lost:
            told = self.connecting.explained(program.link, lost)
            raise LinkError(
                f"{told}; the program there restores the device by itself, or else the next run does"
            ) from None

    def _reconnect(self, error: PerfsuiteError, *, is_slow: bool) -> None:
        """Reach the board once more, for as long as the limit lets."""
        if is_slow or not isinstance(error, LinkError) or not self.connecting.limits.reconnect_s:
            raise self._ended(error)
        since = time.monotonic()
        try:
            self._program = self.connecting.connected_again(error)
        except PerfsuiteError as still:  # whatever keeps it, this run's link is gone
            raise self._ended(_as_link_error(still)) from None
        self._gone = error  # until it is known whose program that is, whatever interrupts it
        try:
            self.recognise(self._program)
        except LostLinkError as lost:
            raise self._ended(self._why_lost(lost)) from None
        except PerfsuiteError as other:  # another board, or one that cannot say what it is
            raise self._ended(_as_link_error(other)) from None
        self._gone = None
        self.notes.append(f"the link was lost and came back after {time.monotonic() - since:.0f} s: {error}")

    def _why_lost(self, lost: LostLinkError) -> PerfsuiteError:
        """Let go of a link that is lost, and say why it is."""
        program, self._program = self._program, None
        self.n_lost += 1
        assert program is not None
        program.forget()
        return self.connecting.explained(program.link, lost)

    def _ended(self, error: PerfsuiteError) -> PerfsuiteError:
        self._gone = error
        return error


def _as_link_error(error: PerfsuiteError) -> LinkError:
    return error if isinstance(error, LinkError) else LinkError(str(error))
