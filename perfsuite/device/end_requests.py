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


#: What others send to end a program, or what it has asked to be sent; none that an error of its own raises.
_SIGNALS = (*END_REQUESTS, signal.SIGQUIT, signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2)


@contextmanager
def signals_held_off() -> Iterator[None]:
    """Let signals come to this thread, and to threads that it starts, only once the context has ended.

    Python runs handlers in the main thread, also of a signal that another thread took: whoever must not leave anything
    behind still has to clean up after any exception. And such a signal interrupts no wait of the main thread, up to
    Python 3.11 it even hides one that the main thread took before: threads are started in here, and so are imported the
    libraries that start some of their own, as NumPy's OpenBLAS does.

    *Source*: CPython 3.11, Python/ceval_gil.c: the thread that takes a signal sets ``eval_breaker``, by what it may
    itself handle.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
