"""Requests to end this program: the first one ends it in order, with all that it has kept, and a second one at once.

What it leaves then the next run repairs: locks are the kernel's, workers end with it, and files say what is restored.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

#: What Ctrl-C, a service that is stopped or a job that is cancelled, and a terminal that is closed send.
END_REQUESTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

#: What answers them where nobody has asked for anything else.
_USUAL = (signal.SIG_DFL, signal.default_int_handler)

#: Signals within this time of the first are the same request, as of a terminal that is closed, s.
_SAME_REQUEST_S = 2.0


class EndRequests:
    """What this program does when it is asked to end: it raises what `raised` gives for the signal."""

    def __init__(self, raised: Callable[[int], BaseException]) -> None:
        self._raised = raised
        self._first_s: float | None = None
        #: Whether it ends in order anyhow, so that a first request changes nothing.
        self.is_ending = False

    def on_signal(self, number: int, _: FrameType | None) -> None:
        """Raise for the first request; end at once for a second one."""
        if self._first_s is None:
            self._first_s = time.monotonic()
            if not self.is_ending:
                raise self._raised(number)
        elif time.monotonic() - self._first_s > _SAME_REQUEST_S:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


@contextmanager
def requests_heard(raised: Callable[[int], BaseException]) -> Iterator[EndRequests]:
    """Let requests to end raise what `raised` gives; who ignores one, or handles it by themselves, still does."""
    requests = EndRequests(raised)
    with _handled(requests.on_signal, lambda handler: handler in _USUAL):
        yield requests


@contextmanager
def requests_unheard() -> Iterator[None]:
    """Hear no request to end; programs that are started meanwhile do.

    One that is ignored stays ignored, for programs that are started inherit that, and no handler. One that something
    else than Python handles stays as well: Python could not put it back.
    """
    with _handled(lambda _, __: None, lambda handler: handler not in (None, signal.SIG_IGN)):
        yield


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], None], is_replaced: Callable[[object], bool]) -> Iterator[None]:
    """Let a handler take the place of those that may be replaced; Python has handlers in its main thread alone."""
    numbers = END_REQUESTS if threading.current_thread() is threading.main_thread() else ()
    before = {each: found for each in numbers if is_replaced(found := signal.getsignal(each))}
    try:
        for each in before:
            signal.signal(each, handler)
        yield
    finally:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, END_REQUESTS)  # or one handler might keep the others away
        try:
            for each, found in before.items():
                signal.signal(each, found)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


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
