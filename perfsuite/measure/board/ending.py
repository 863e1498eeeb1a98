"""How the agent's main thread comes to its end: by a signal, or since the thread that listens wants it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

from perfsuite.device.end_requests import END_REQUESTS

#: Time for the main thread to come to its end, before it is asked again.
_INSIST_S = 5.0


class EndedError(BaseException):
    """Ends whatever the agent is at; no `Exception`, for nobody may take it for one of a measurement."""


class Flag:
    """Whether something has come to be. A signal's handler may set it at any moment, since it has no lock."""

    def __init__(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        """Whether it has."""
        return self._is_set

    def set(self) -> None:
        """Say that it has."""
        self._is_set = True


class Ending:
    """The end that somebody wants, and that the main thread comes to."""

    def __init__(self) -> None:
        #: Somebody wants the end.
        self.is_over = Flag()
        self._is_deaf = False
        self._is_letting_go = threading.Event()
        #: Why; "" where the desk has said goodbye.
        self.reason: str | None = None

    def come(self, reason: str) -> None:
        """Let the main thread end, whatever it is at; the first reason counts."""
        if self.reason is None:
            self.reason = reason
        self.is_over.set()
        _signal_main_thread()

    def blame(self, reason: str) -> None:
        """Say what went wrong, unless something else did before; a goodbye is nothing that did."""
        self.reason = self.reason or reason

    def let_go(self) -> None:
        """Be at the end: nothing breaks in any more. For the main thread, which may have to call it again."""
        self._is_deaf = True  # by itself: what a signal broke off further down would leave the event locked
        self.is_over.set()
        self._is_letting_go.set()

    def hear_signals(self, is_held_off: Callable[[], bool]) -> None:
        """Let signals raise in the main thread, unless they are held off, and be known to `insist` as they come."""

        def end(number: int, _: FrameType | None) -> None:
            self.is_over.set()
            if not (self._is_deaf or is_held_off()):
                raise EndedError(signal.Signals(number).name)

        self._signalled, wakes = os.pipe()
        os.set_blocking(wakes, False)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        for each in END_REQUESTS:
            signal.signal(each, end)

    def insist(self) -> None:
        """Signal again where the main thread did not hear, from another thread.

        A signal that comes just before a system call is handled after it, which may take as long as a worker does; what
        is raised within a finalizer is lost.
        """
        os.read(self._signalled, 1)
        while not self._is_letting_go.wait(_INSIST_S):
            _signal_main_thread()


def _signal_main_thread() -> None:
    """Send the signal to that very thread: another one would take it, and leave the main thread where it waits."""
    main_thread = threading.main_thread().ident
    assert main_thread is not None
    signal.pthread_kill(main_thread, signal.SIGTERM)
