"""Starting an agent on a board, and saying in one line why there is no link to it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from perfsuite.device.setup.installed import NO_PROGRAM, suite_python
from perfsuite.device.target.shell_target import Target
from perfsuite.device.target.words import last_line
from perfsuite.errors import DeviceError, LinkError, LockedError, PerfsuiteError
from perfsuite.measure.board.hello import PING_S, SILENCE_LIMIT_S, Hello, refusal
from perfsuite.measure.board.link import AgentLink, LostLinkError, RefusedError
from perfsuite.measure.board.pipes import AgentPipes

_AGENT = ("-I", "-m", "perfsuite.measure.board.agent")

#: How OpenSSH's client ends where the link fails, or a signal ended what it had started.
SSH_FAILED = 255

#: What begins the agent's own last words.
_OWN_WORDS = "perfsuite: "


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkLimits:
    """How long is waited for what, s."""

    #: Between two signs of life, and how much silence is too much.
    ping_s: float = PING_S
    silence_s: float = SILENCE_LIMIT_S
    #: For a short answer, an interpreter that starts on a slow board included.
    answer_s: float = 120.0
    #: For weights that are written or checked there, and for a file that is put.
    weights_s: float = 3600.0
    #: For what a plan takes beyond a worker's own limit.
    beyond_worker_s: float = 60.0
    #: For a link that was lost to come back, and between two tries.
    reconnect_s: float = 60.0
    retry_s: float = 2.0
    #: For the agent to restore the board at the end.
    end_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Connecting:
    """How a board is reached, and what is said there first."""

    #: The device's, for messages and for ``perfsuite devices setup NAME``.
    name: str
    target: Target
    #: `Reach.home`.
    home: str
    hello: Hello
    #: Is told what is waited for.
    tell: Callable[[str], None]
    limits: LinkLimits = field(default_factory=LinkLimits)

    def connected(self) -> AgentLink:
        """Start an agent there, and let it take the board.

        Raises `LinkError` where it cannot be reached; `DeviceError` where the suite is not there, or another version of
        it; `LockedError` where somebody else has it.
        """
        process = self.target.start((suite_python(self.home), *_AGENT))
        limits = self.limits
        pipes = AgentPipes(process, ping_s=limits.ping_s, silence_limit_s=limits.silence_s)
        link = AgentLink(pipes, note=self.tell)
        waits_s = self.hello.claim.wait_s + self.hello.conditions.cooling_limit_s
        try:
            link.ask("hello", self.hello.to_plain(), limit_s=limits.answer_s + waits_s)
        except LostLinkError as lost:
            raise self.explained(link, lost) from None
        except RefusedError as refused:
            pipes.cut()
            told = refusal(self.hello.to_plain(), refused.versions)
            raise DeviceError(f"{self.name}: {told}; run 'perfsuite devices setup {self.name}'") from None
        except BaseException:
            pipes.cut()
            raise
        return link

    def connected_again(self, error: LinkError) -> AgentLink:
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

    def explained(self, link: AgentLink, lost: LostLinkError) -> PerfsuiteError:
        """Return the error that says why a link is lost, by what the process that carried it has left."""
        pipes, where = link.pipes, self.target.text
        status = pipes.exit_status() if lost.has_ended else None
        pipes.cut()
        if not pipes.has_begun and _has_no_suite(status, pipes.errors):
            return DeviceError(
                f"{self.name}: perfsuite is not installed there ({where}, {self.home}); "
                f"run 'perfsuite devices setup {self.name}'"
            )
        own = last_line(pipes.errors.decode("utf-8", "replace"))
        if own.startswith(_OWN_WORDS):
            return LinkError(f"{where}: the agent there ended: {own.removeprefix(_OWN_WORDS)}")
        if status is None:
            return LinkError(f"{where}: the link was lost: {lost}")
        if pipes.has_begun and not pipes.errors and status != SSH_FAILED:
            return LinkError(f"{where}: the agent there was ended from outside ({lost}, status {status})")
        return LinkError(f"{where}: {self.target.link_complaint(pipes.errors)}")


def _has_no_suite(status: int | None, errors: bytes) -> bool:
    """Whether a start failed because the suite is not there: no such program, or a Python without it."""
    lacks = (b"No module named perfsuite", b"No module named 'perfsuite", b"Error while finding module specification")
    return status in NO_PROGRAM or any(each in errors for each in lacks)
