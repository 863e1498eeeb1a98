"""The publishing thread between a queue that the test fills and subscribers on a real socket."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perfsuite.measure.live import subscribe
from perfsuite.records.live import LiveEnd, LiveKernel, LiveLoss, LivePhase, LiveRecord, LiveToken

from ..synthetic_opencl import command, log_bytes, trace
from .synthetic_live import paused, published, push

LIMIT_S = 60.0
LOAD, DECODE, COPY, END_TO_END = 0, 2, 3, 6


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "own" / "live.sock"


def until_token(records: Iterator[LiveRecord], token: int) -> list[LiveRecord]:
    seen = []
    for record in records:
        seen.append(record)
        if isinstance(record, LiveToken) and record.token == token:
            return seen
    raise AssertionError(f"no token {token} among {seen}")


def test_tokens_come_while_the_run_waits(library: ctypes.CDLL, path: Path) -> None:
    """Each token is received before the next one is even pushed: delivery needs no later event."""
    with published(library, path):
        push(library, LOAD, 0, 0, 10)
        records = subscribe(path, limit_s=LIMIT_S)
        first = next(records)
        assert isinstance(first, LivePhase)
        assert first.phase == "load"
        for token in range(20):
            push(library, DECODE, token, 100 * token, 100 * token + 50)
            push(library, COPY, token, 100 * token + 50, 100 * token + 60)
            seen = until_token(records, token)
            assert isinstance(seen[-2], LivePhase)
            assert (seen[-2].phase, seen[-2].token) == ("decode", token)


def test_a_run_that_breaks_off_says_so(library: ctypes.CDLL, path: Path) -> None:
    records = subscribe(path, limit_s=LIMIT_S)

    def break_off() -> None:
        with published(library, path):
            push(library, DECODE, 0, 0, 1)
            until_token(records, 0)
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        break_off()
    end = list(records)[-1]
    assert isinstance(end, LiveEnd)
    assert (end.is_complete, end.n_tokens) == (False, 1)
    assert not path.exists()


def test_a_queue_that_overflows_is_told(library: ctypes.CDLL, path: Path) -> None:
    """Received and lost phases are all phases, wherever the publisher fell behind."""
    n_phases = 5000  # less than the subscriber's buffer, so that nothing is lost there
    seen: list[LiveRecord] = []
    has_begun = threading.Event()

    def listen() -> None:
        for record in subscribe(path, limit_s=LIMIT_S):
            seen.append(record)
            has_begun.set()

    listener = threading.Thread(target=listen)
    with published(library, path):
        listener.start()
        push(library, DECODE, 0, 0, 1)
        assert has_begun.wait(LIMIT_S)
        for token in range(1, n_phases):
            push(library, COPY, token, 0, 1)
        push(library, END_TO_END, n_phases, 0, 1)
    listener.join(LIMIT_S)
    lost = [each for each in seen if isinstance(each, LiveLoss)]
    tokens = [each.token for each in seen if isinstance(each, LivePhase)]
    assert {each.where for each in lost} <= {"queue"}
    assert len(tokens) + sum(each.n_records or 0 for each in lost) == n_phases + 1
    assert tokens == sorted(tokens)


def test_the_thread_keeps_to_its_processors(library: ctypes.CDLL, path: Path) -> None:
    usable = os.sched_getaffinity(0)
    wanted = frozenset({max(usable)})
    with published(library, path, processors=wanted):
        push(library, LOAD, 0, 0, 1)
        next(subscribe(path, limit_s=LIMIT_S))
        (thread,) = (each for each in threading.enumerate() if each.name == "perfsuite-live")
        assert thread.native_id is not None
        assert os.sched_getaffinity(thread.native_id) == wanted
        assert os.sched_getaffinity(0) == usable


def kernel_log(*enqueue_ns: int) -> bytes:
    launches = [command(number, at_ns, (0, 0, 0, 0)) for number, at_ns in enumerate(enqueue_ns)]
    return log_bytes(trace(launches, names=["add"], devices=(), queues=()), is_ended=False)


def test_kernels_come_from_the_layers_log(library: ctypes.CDLL, path: Path, tmp_path: Path) -> None:
    """What the layer has written by a token's end is sent with it; what it enqueued before the run's begin is not.

    Nobody knows how many a broken log had, and the stream goes on without.
    """
    log = tmp_path / "opencl-1.log"
    with published(library, path, opencl_log=log):
        records = subscribe(path, limit_s=LIMIT_S)
        with paused(library):
            pass
        push(library, DECODE, 0, 0, 1)
        until_token(records, 0)
        log.write_bytes(kernel_log(5, 2**62))
        push(library, DECODE, 1, 1, 2)
    seen = list(records)
    kernels = [each for each in seen if isinstance(each, LiveKernel)]
    assert [(each.sequence, each.name, each.enqueue_ns) for each in kernels] == [(1, "add", 2**62)]
    end: Any = seen[-1]
    assert end.n_kernels == 1
    log.write_bytes(b"no log of any kind at all")
    with published(library, path, opencl_log=log):
        push(library, DECODE, 0, 0, 1)
        records = subscribe(path, limit_s=LIMIT_S)
        push(library, DECODE, 1, 0, 1)
        seen = until_token(records, 1)
    seen += list(records)
    assert [each for each in seen if isinstance(each, LiveLoss)] == [LiveLoss(where="opencl", n_records=None)]
