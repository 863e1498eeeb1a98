"""A request to end a run is taken as Ctrl-C: what was measured is kept, and the device is restored and given back."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

import pytest

from perfsuite.device.end_requests import END_REQUESTS, HeardRequests

#: What answers each signal where nobody has asked for anything else.
_USUAL = dict.fromkeys(END_REQUESTS, signal.SIG_DFL) | {signal.SIGINT: signal.default_int_handler}


class RunSignals:
    """A plugin of pytest for one run: while it measures, signals end it; while it ends, they are not heard."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._is_ending = False
        self._requests = HeardRequests()

    def hear(self) -> None:
        """Begin; only in the main thread, and only for signals that would end this process at once."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number, usual in _USUAL.items():
            if signal.getsignal(number) is usual:
                self._before[number] = signal.signal(number, self._on_signal)

    def restore(self) -> None:
        """Let signals do what they did before."""
        while self._before:
            signal.signal(*self._before.popitem())

    def pytest_keyboard_interrupt(self) -> None:
        """Keep silent from here on: the run is being ended."""
        self._is_ending = True

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Keep silent while files are written and the device is restored, which takes seconds."""
        self._is_ending = True

    @pytest.hookimpl(tryfirst=True)
    def pytest_unconfigure(self) -> None:
        """As `pytest_sessionfinish`, for a run that did not come that far."""
        self._is_ending = True

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        # whoever presses Ctrl-C once more, and not at once, does not want to wait for the end
        if (number == signal.SIGINT or not self._is_ending) and self._requests.is_new():
            raise KeyboardInterrupt(signal.Signals(number).name)


def end_on_signals(config: pytest.Config) -> None:
    """Let Ctrl-C, SIGTERM and SIGHUP end this run in order, until pytest has cleaned up."""
    signals = RunSignals()
    config.add_cleanup(signals.restore)  # the first to be added is the last to be done
    config.pluginmanager.register(signals, "perfsuite-signals")
    signals.hear()
