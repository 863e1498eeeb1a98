"""One subscriber's end of the live socket: what it is sent, what waits for it, and what it misses."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from perfsuite.records.live import LiveLoss, to_line

#: What waits for a subscriber beside the socket's own buffer; what finds no room is dropped and counted.
BUFFER_BYTES = 1 << 20


class LiveConnection:
    """One connection and what waits for it."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.is_gone = False
        self._unsent = bytearray()
        self._n_missed = 0

    @property
    def has_unsent(self) -> bool:
        """Whether something waits for room in the socket."""
        return bool(self._unsent)

    def offer(self, content: bytes, n_lines: int) -> None:
        """Send what the socket takes at once and keep the rest, or drop all of it where too much waits already."""
        told = self._told_loss()
        if len(self._unsent) + len(told) + len(content) > BUFFER_BYTES:
            self._n_missed += n_lines
            return
        self._n_missed = 0
        self._unsent += told
        self._unsent += content
        self.send()

    def send(self) -> None:
        """Send what the socket takes."""
        try:
            while self._unsent:
                del self._unsent[: self.connection.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self.is_gone = True

    def tell_loss(self) -> None:
        """Say what was dropped, where nothing came after it that would have said so."""
        self._unsent += self._told_loss()
        self._n_missed = 0
        self.send()

    def listen(self) -> None:
        """Notice where the other side has hung up; it has nothing to say."""
        try:
            self.is_gone = self.is_gone or not self.connection.recv(4096)
        except BlockingIOError:
            pass
        except OSError:
            self.is_gone = True

    def _told_loss(self) -> bytes:
        if not self._n_missed:
            return b""
        return content_of([to_line(LiveLoss(where="subscriber", n_records=self._n_missed))])


def content_of(lines: Sequence[str]) -> bytes:
    """Return lines as they are sent, each with its end."""
    return ("\n".join(lines) + "\n").encode() if lines else b""
