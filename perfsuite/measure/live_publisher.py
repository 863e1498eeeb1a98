"""The thread that publishes the records of a run at a local socket.

The worker pushes phases into memory that it shares with the program which serves this machine
(``native/src/agent/live_feed.h``), and has no thread of its own for it. Forecasts are the subscriber's work, so that a
run does not pay for them.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.device.end_requests import signals_held_off
from perfsuite.measure.live_server import LiveServer, open_server
from perfsuite.records.events import Phase
from perfsuite.records.live import LiveKernel, LivePhase, LiveRecord, LiveToken, to_line
from perfsuite.units import NS_PER_S

if TYPE_CHECKING:
    from perfsuite.measure.board.runs import Hear
    from perfsuite.measure.live import Delivery


class TokenCounter:
    """Makes token records out of decode steps."""

    def __init__(self) -> None:
        self._repetition = -1
        self._n_tokens = 0
        self._first_start_ns = 0

    def count(self, phase: LivePhase) -> LiveToken | None:
        """Return the record of the token that a phase decoded, if it is a decode step."""
        if phase.phase != Phase.DECODE.value:
            return None
        if phase.repetition != self._repetition:
            self._repetition, self._n_tokens, self._first_start_ns = phase.repetition, 0, phase.start_ns
        self._n_tokens += 1
        spent_ns = max(1, phase.end_ns - self._first_start_ns)
        return LiveToken(
            repetition=phase.repetition,
            step=self._n_tokens - 1,
            token=phase.token,
            latency_ns=phase.end_ns - phase.start_ns,
            end_ns=phase.end_ns,
            tokens_per_s=self._n_tokens * NS_PER_S / spent_ns,
        )


#: Longest wait for a record; subscribers are served meanwhile.
_WAIT_S = 1.0

#: Longest that the end of a run waits for slow subscribers, after everything was measured.
_FLUSH_S = 0.5


@contextmanager
def published(socket_path: Path) -> Iterator[Hear]:
    """Offer what is heard at a socket, which is there for as long as the context lasts.

    Raises `MeasurementError` where nothing can listen there.
    """
    records: queue.SimpleQueue[LiveRecord] = queue.SimpleQueue()
    is_over = threading.Event()
    woken = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def hear(delivery: Delivery) -> None:
        records.put(delivery.record)
        os.eventfd_write(woken, 1)

    def serve(server: LiveServer) -> None:
        while not is_over.is_set():
            server.wait(_WAIT_S)
            with suppress(BlockingIOError):
                os.eventfd_read(woken)
            _publish(server, records)
        server.wait(0)  # who has just come
        _publish(server, records)
        server.flush(_FLUSH_S)

    try:
        with open_server(socket_path) as server:
            server.watch(woken)
            thread = threading.Thread(target=serve, args=(server,), name="perfsuite-live", daemon=True)
            with signals_held_off():
                thread.start()
            try:
                yield hear
            finally:
                is_over.set()
                os.eventfd_write(woken, 1)
                thread.join()
    finally:
        os.close(woken)


def _publish(server: LiveServer, records: queue.SimpleQueue[LiveRecord]) -> None:
    """Publish what has come; kernels are not kept for who comes later."""
    found: list[LiveRecord] = []
    with suppress(queue.Empty):
        while True:
            found.append(records.get_nowait())
    for is_kernel, some in groupby(found, lambda each: isinstance(each, LiveKernel)):
        server.publish([to_line(each) for each in some], is_kept=not is_kernel)
