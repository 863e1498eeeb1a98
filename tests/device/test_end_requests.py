"""Requests to end a program: which signals are one, and a time in which none is heard."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from perfsuite.device import end_requests
from perfsuite.device.end_requests import END_REQUESTS, HeardRequests, requests_unheard, signals_held_off


def test_a_signal_comes_after_the_context() -> None:
    done: list[str] = []

    def interrupted() -> None:
        with signals_held_off():
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # the process's may come to another thread
            done.append("all")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert done == ["all"]


def test_the_mask_is_as_before() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with signals_held_off():
        with pytest.raises(KeyError), signals_held_off():
            raise KeyError
        assert signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def in_a_thread(look: Callable[[], object]) -> object:
    found = []
    thread = threading.Thread(target=lambda: found.append(look()))
    thread.start()
    thread.join()
    return found[0]


def test_a_thread_that_is_started_within_leaves_signals_to_others() -> None:
    """For as long as it lives; where another than the main one holds requests off, Python installs no handlers."""
    with signals_held_off():
        mask = in_a_thread(lambda: signal.pthread_sigmask(signal.SIG_BLOCK, ()))
    assert {signal.SIGINT, signal.SIGTERM, signal.SIGHUP} <= set(mask)  # type: ignore[call-overload]
    before = _handlers()

    def look() -> list[object]:
        with requests_unheard():
            return _handlers()

    assert in_a_thread(look) == before


#: Sends SIGHUP to a program that it has started while no request is heard, and says how that ended.
NOHUP = """
import signal, subprocess
from perfsuite.device.end_requests import requests_unheard
with requests_unheard():
    child = subprocess.Popen(["sleep", "0.2"])
    child.send_signal(signal.SIGHUP)
    print(child.wait(10))
print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)
"""


def _handlers() -> list[object]:
    return [signal.getsignal(each) for each in END_REQUESTS]


def test_signals_right_behind_each_other_are_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one counts; one that comes 5 s later is another request."""
    now_s = [100.0]
    monkeypatch.setattr(end_requests, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    requests, found = HeardRequests(), []
    for now_s[0] in (100.0, 104.9, 105.0, 109.0, 111.0):
        found.append(requests.is_new())
    assert found == [True, False, True, False, True]


def test_no_request_is_heard_for_a_while() -> None:
    before, done = _handlers(), []

    def unheard() -> None:
        with requests_unheard():
            for each in END_REQUESTS:
                signal.raise_signal(each)
            done.append("all")
            raise KeyError

    with pytest.raises(KeyError):
        unheard()
    assert done == ["all"]
    assert _handlers() == before


def test_what_is_ignored_stays_ignored_by_programs_that_are_started() -> None:
    """Under nohup a program that is started meanwhile survives that the terminal is closed, as it would have before."""
    command = ["nohup", sys.executable, "-c", NOHUP]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=30)
    assert (done.stdout.split(), done.stderr) == (["0", "True"], "")


def test_a_handler_that_python_does_not_know_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python could not put it back, so that it is left where it is."""
    get, set_ = signal.getsignal, signal.signal
    numbers = []

    def signal_(number: int, handler: Any) -> Any:
        numbers.append(number)
        before = set_(number, handler)
        return None if number == signal.SIGHUP else before

    monkeypatch.setattr(signal, "getsignal", lambda number: None if number == signal.SIGHUP else get(number))
    monkeypatch.setattr(signal, "signal", signal_)
    with requests_unheard():
        pass
    assert sorted(numbers) == sorted([signal.SIGINT, signal.SIGTERM] * 2)
