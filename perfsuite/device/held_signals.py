"""Holding off the signals that end a program, for the few moments in which it must not be broken off."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from perfsuite.device.end_requests import END_REQUESTS

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
