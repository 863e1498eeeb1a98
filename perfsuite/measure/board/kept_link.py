"""A link that is kept: reached when something is asked for, and once more where it is lost on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from perfsuite.errors import LinkError, PerfsuiteError
from perfsuite.measure.board.connecting import Connecting
from perfsuite.measure.board.holding import Held
from perfsuite.measure.board.link import AgentLink, LostLinkError


@dataclass(kw_only=True)
class KeptLink:
    """The link to a board's agent, one after the other."""

    connecting: Connecting
    #: Looks at an agent that answers in the place of one before; a `PerfsuiteError` refuses it.
    recognise: Callable[[AgentLink], None]
    #: What a reader of the run should know of it.
    notes: list[str] = field(default_factory=list)
    #: How many links were lost so far.
    n_lost: int = 0
    _link: AgentLink | None = None
    #: Why there is no link any more, once it did not come back.
    _gone: PerfsuiteError | None = None

    @property
    def is_open(self) -> bool:
        """Whether an agent is there to be asked; one that was not recognised is only to be ended."""
        return self._link is not None and self._gone is None

    def opened(self) -> AgentLink:
        """Return the link; the board is reached where it is not yet. Raises as `Connecting.connected`."""
        if self._gone is not None:
            raise self._gone
        if self._link is None:
            self._link = self.connecting.connected()
        return self._link

    def ask(self, kind: str, arguments: Mapping[str, Any], *, limit_s: float) -> Any:
        """Ask the agent; where the link is lost on the way, once more over a new one.

        Raises `LinkError` where the link is lost, and did not come back; so it is for all that is asked from then on;
        `PerfsuiteError` as the agent raised it, or `Connecting.connected`.
        """
        try:
            return self.opened().ask(kind, arguments, limit_s=limit_s)
        except LostLinkError as lost:
            self._reconnect(self._why_lost(lost), is_slow=lost.is_slow)
        try:
            return self.opened().ask(kind, arguments, limit_s=limit_s)
        except LostLinkError as lost:
            raise self._ended(self._why_lost(lost)) from None

    def end(self, *, limit_s: float) -> Held | None:
        """Let the agent restore the board and end, and return what it said last; None where it said nothing.

        Raises `PerfsuiteError` where something could not be restored, or nobody knows: the link was lost.
        """
        link, self._link = self._link, None
        if link is None:
            return None
        try:
            return link.end(limit_s=limit_s)
        except LostLinkError as lost:
            told = self.connecting.explained(link, lost)
            raise LinkError(
                f"{told}; the agent there restores the device by itself, or else the next run does"
            ) from None

    def _reconnect(self, error: PerfsuiteError, *, is_slow: bool) -> None:
        """Reach the board once more, for as long as the limit lets."""
        if is_slow or not isinstance(error, LinkError):
            raise self._ended(error)
        since = time.monotonic()
        try:
            self._link = self.connecting.connected_again(error)
        except PerfsuiteError as still:  # whatever keeps it, this run's link is gone
            raise self._ended(_as_link_error(still)) from None
        self._gone = error  # until it is known whose agent that is, whatever interrupts it
        try:
            self.recognise(self._link)
        except LostLinkError as lost:
            raise self._ended(self._why_lost(lost)) from None
        except PerfsuiteError as other:  # another board, or one that cannot say what it is
            raise self._ended(_as_link_error(other)) from None
        self._gone = None
        self.notes.append(f"the link was lost and came back after {time.monotonic() - since:.0f} s: {error}")

    def _why_lost(self, lost: LostLinkError) -> PerfsuiteError:
        """Let go of a link that is lost, and say why it is."""
        link, self._link = self._link, None
        self.n_lost += 1
        assert link is not None
        return self.connecting.explained(link, lost)

    def _ended(self, error: PerfsuiteError) -> PerfsuiteError:
        self._gone = error
        return error


def _as_link_error(error: PerfsuiteError) -> LinkError:
    return error if isinstance(error, LinkError) else LinkError(str(error))
