"""The Python side of the native queue."""

from __future__ import annotations

import ctypes
import select

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.live_queue import LiveQueue, open_queue
from perfsuite.records.live import LivePhase

from .synthetic_live import producing, push

DECODE, COPY = 2, 3


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


def test_a_decode_step_wakes_who_asked(library: ctypes.CDLL) -> None:
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


def test_without_memory_there_is_no_queue(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.ftruncate", lambda descriptor, size: None)
    with pytest.raises(MeasurementError, match="cannot be opened: memory is short"), open_queue(library):
        pass
