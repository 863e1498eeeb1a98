"""Requests to end this program: which signals they are, which of them are one, and a time in which none is heard."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: What Ctrl-C, a service that is stopped or a job that is cancelled, and a terminal that is closed send.
END_REQUESTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

#: Signals within this time of one that was heard are the same request, s.
_SAME_REQUEST_S = 5.0


class HeardRequests:
    """Tells a request from signals that follow it, as of a terminal that is closed or of a finger that slips."""

    def __init__(self) -> None:
        self._heard_s: float | None = None

    def is_new(self) -> bool:
        """Whether a signal that comes now is a request of its own; such a one counts as heard."""
        now_s = time.monotonic()
        if self._heard_s is not None and now_s - self._heard_s < _SAME_REQUEST_S:
            return False
        self._heard_s = now_s
        return True


@contextmanager
def requests_unheard() -> Iterator[None]:
    """Hear no request to end; programs that are started meanwhile do.

    One that is ignored stays ignored, for programs that are started inherit that, and no handler. One that something
    else than Python handles stays as well: Python could not put it back.
    """
    is_main = threading.current_thread() is threading.main_thread()
    handlers = {each: signal.getsignal(each) for each in END_REQUESTS if is_main}
    heard = {each: handler for each, handler in handlers.items() if handler not in (None, signal.SIG_IGN)}
    try:
        for each in heard:
            signal.signal(each, _not_hear)
        yield
    finally:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, END_REQUESTS)  # or one handler might keep the others away
        try:
            for each, handler in heard.items():
                signal.signal(each, handler)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _not_hear(_: int, __: FrameType | None) -> None:
    """Do nothing."""
