"""Holding signals off for a while."""

from __future__ import annotations

import signal
import threading

import pytest

from perfsuite.device.held_signals import signals_held_off


def test_a_signal_comes_after_the_context() -> None:
    """What is within is done first."""
    done: list[str] = []

    def interrupted() -> None:
        with signals_held_off():
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # the process's may come to another thread
            done.append("all")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert done == ["all"]


def test_the_mask_is_as_before() -> None:
    """Also after an exception, and where one context is in another."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with signals_held_off():
        with pytest.raises(KeyError), signals_held_off():
            raise KeyError
        assert signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_a_thread_that_is_started_within_leaves_signals_to_others() -> None:
    """For as long as it lives."""
    masks = []
    with signals_held_off():
        thread = threading.Thread(target=lambda: masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, ())))
        thread.start()
    thread.join()
    assert {signal.SIGINT, signal.SIGTERM, signal.SIGHUP} <= masks[0]
