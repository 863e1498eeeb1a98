"""Requests to end a program: which signals are one, and a time in which none is heard."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from perfsuite.device.end_requests import END_REQUESTS, requests_heard, requests_unheard, signals_held_off


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


#: Is asked to end twice, at once and later, and says what it comes to.
TWICE = """
import signal, time
from perfsuite.device.end_requests import requests_heard
with requests_heard(lambda number: KeyboardInterrupt(number)) as requests:
    requests.is_ending = {is_ending}
    try:
        signal.raise_signal(signal.SIGTERM)
        print("went on")
    except KeyboardInterrupt:
        print("interrupted")
    signal.raise_signal(signal.SIGHUP)
    print("kept", flush=True)
    time.sleep(2.1)
    signal.raise_signal(signal.SIGINT)
    print("not reached", flush=True)
"""


@pytest.mark.parametrize(("is_ending", "first"), [(False, "interrupted"), (True, "went on")])
def test_a_second_request_ends_it_at_once(is_ending: bool, first: str) -> None:
    """The first one raises, unless it is ending anyhow; what comes right behind it is the same request."""
    command = [sys.executable, "-c", TWICE.format(is_ending=is_ending)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert (done.stdout.split("\n"), done.returncode) == ([first, "kept", ""], -signal.SIGINT)


def test_handlers_of_others_stay() -> None:
    """What somebody ignores, or handles by themselves, is theirs; all is as before in the end."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with requests_heard(KeyboardInterrupt) as requests:
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) == requests.on_signal
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


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
