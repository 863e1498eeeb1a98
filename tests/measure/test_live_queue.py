"""The Python side of the native queue."""

from __future__ import annotations

import ctypes
import select
import time

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.live_queue import LiveQueue, open_queue
from perfsuite.records.live import LivePhase

from .synthetic_live import live_library, paused, producing, push

DECODE, COPY = 2, 3


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return live_library(tmp_path_factory.mktemp("live"))


def is_woken(queue: LiveQueue) -> bool:
    return bool(select.select([queue.event_fd], [], [], 0)[0])


def test_phases_come_out_as_records(library: ctypes.CDLL) -> None:
    with open_queue(library) as queue, producing(library, queue):
        push(library, DECODE, 64, 10, 25, repetition=3)
        push(library, COPY, 64, 26, 30, repetition=3)
        assert queue.take() == [
            LivePhase(phase="decode", repetition=3, token=64, n_tokens=1, start_ns=10, end_ns=25),
            LivePhase(phase="copy", repetition=3, token=64, n_tokens=1, start_ns=26, end_ns=30),
        ]
        assert queue.take() == []


def test_what_finds_no_room_is_counted(library: ctypes.CDLL) -> None:
    """After the capacity is used up, the rest is dropped; a look takes some hundreds."""
    with open_queue(library) as queue, producing(library, queue):
        for token in range(1030):
            push(library, COPY, token, 0, 1)
        taken = []
        while found := queue.take():
            taken.extend(found)
        assert [phase.token for phase in taken] == list(range(1024))
        assert queue.n_dropped == 6


def test_a_decode_step_wakes_who_asked(library: ctypes.CDLL) -> None:
    """Nothing before, one wake-up after, none when it was cleared."""
    with open_queue(library) as queue, producing(library, queue):
        push(library, DECODE, 1, 0, 1)
        assert not is_woken(queue)
        assert queue.arm()
        queue.take()
        assert not queue.arm()
        push(library, COPY, 1, 1, 2)
        assert not is_woken(queue)
        push(library, DECODE, 2, 2, 3)
        assert is_woken(queue)
        queue.clear_wake_up()
        queue.clear_wake_up()
        assert not is_woken(queue)
        queue.wake()
        assert is_woken(queue)


def test_a_pause_is_silent_and_is_known(library: ctypes.CDLL) -> None:
    """No warm-up's phase comes; what began before its end is no part of the run. Another queue begins empty."""
    with open_queue(library) as queue, producing(library, queue):
        assert queue.resumed_ns == 0
        with paused(library):
            assert queue.resumed_ns == 2**63 - 1
            push(library, DECODE, 1, 0, 1)
        assert 0 < queue.resumed_ns <= time.monotonic_ns()
        push(library, DECODE, 2, 0, 1)
        assert [phase.token for phase in queue.take()] == [2]
    with open_queue(library) as queue, producing(library, queue):
        assert queue.take() == []


def test_without_memory_there_is_no_queue(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.ftruncate", lambda descriptor, size: None)
    with pytest.raises(MeasurementError, match="cannot be opened: memory is short"), open_queue(library):
        pass
