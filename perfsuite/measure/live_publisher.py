"""The thread beside a worker that publishes what its driver and the OpenCL layer record.

The worker pushes phases into memory that it shares with this process (``native/include/perfsuite/live.h``), and has no
thread of its own for it. What costs a run is not the bytes but the wake-ups: where every processor computes, each takes
one away from a thread for whose end the others wait. So:

- The thread sleeps in one `select` on all that may happen, and the driver wakes it by an eventfd, once a token. Looking
  every few milliseconds would wake it as often, at any moment of a matrix product.
- It is woken when the decode step ends, not when the token is complete: copy, softmax and sampling follow, which run on
  the driver's thread alone, so the other processors have nothing else to do. The records of these three travel with the
  next token.
- Where each of the engine's threads is bound to a processor, this one keeps off the driver's.
- Tokens faster than `LEAST_INTERVAL_S` share a wake-up. Without a subscriber the driver wakes nobody.

It takes about a tenth of a millisecond a token, half of it in the system call that sends. Forecasts are the
subscriber's work, so that a run does not pay for them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.errors import MeasurementError
from perfsuite.measure.live_queue import AT_ONCE, LiveQueue, open_queue
from perfsuite.measure.live_server import LiveServer, open_server
from perfsuite.records.events import Phase
from perfsuite.records.live import LiveEnd, LiveKernel, LiveLoss, LivePhase, LiveToken, to_line
from perfsuite.units import NS_PER_S

if TYPE_CHECKING:
    import ctypes

    from perfsuite.records.opencl_log_tail import OpenClLogTail


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


#: Wake-ups that follow each other faster wait for so long first.
LEAST_INTERVAL_S = 0.002

#: How often the queue is emptied while nobody listens, and the longest wait while somebody does.
_IDLE_S = 0.05
_WAIT_S = 1.0

#: Most of the OpenCL layer's log that is read at once, some thousand kernels; the rest waits for the next wake-up.
_LOG_BYTES = 1 << 20

#: Longest that the end of a run waits for slow subscribers, after everything was measured.
_FLUSH_S = 0.5


class LivePublisher:
    """Forwards records until it is stopped."""

    def __init__(self, queue: LiveQueue, server: LiveServer) -> None:
        self._queue = queue
        self._server = server
        #: The log of the OpenCL layer in the worker, whose kernels are published, too.
        self.tail: OpenClLogTail | None = None
        self._tokens = TokenCounter()
        self._n_phases = self._n_tokens = self._n_kernels = self._n_dropped = 0
        self._woken_s = 0.0
        self._is_stopping = threading.Event()
        server.watch(queue.event_fd)

    def run(self) -> None:
        """Forward what comes, until `stop`."""
        while not self._is_stopping.is_set():
            self._forward()
            if not self._server.has_subscribers:
                self._server.wait(_IDLE_S)
            elif not self._queue.arm():
                self._server.wait(_WAIT_S)
                self._keep_interval()
            self._queue.clear_wake_up()

    def stop(self) -> None:
        """Let `run` end; from any thread."""
        self._is_stopping.set()
        self._queue.wake()

    def finish(self, *, is_complete: bool) -> None:
        """Forward the rest and say that it was the last; after `run` has ended.

        Kernels that the OpenCL layer has not written yet are not waited for.
        """
        self._forward(log_bytes=-1)
        end = LiveEnd(
            end_ns=time.monotonic_ns(),
            is_complete=is_complete,
            n_phases=self._n_phases,
            n_tokens=self._n_tokens,
            n_kernels=self._n_kernels,
        )
        self._server.wait(0)  # who has just come
        self._server.publish([to_line(end)])
        self._server.flush(_FLUSH_S)

    def _keep_interval(self) -> None:
        """Sleep a moment where the last wake-up was a moment ago, so that fast tokens share one."""
        now_s = time.monotonic()
        if now_s - self._woken_s < LEAST_INTERVAL_S:
            self._is_stopping.wait(LEAST_INTERVAL_S)
        self._woken_s = now_s

    def _forward(self, log_bytes: int = _LOG_BYTES) -> None:
        is_more = True
        while is_more:
            phases = self._queue.take()
            self._publish_phases(phases)
            is_more = len(phases) == AT_ONCE
        n_dropped = self._queue.n_dropped
        if n_dropped != self._n_dropped:
            self._publish_loss("queue", n_dropped - self._n_dropped)
            self._n_dropped = n_dropped
        if self.tail is not None:
            self._forward_kernels(self.tail, log_bytes)

    def _publish_phases(self, phases: Sequence[LivePhase]) -> None:
        lines = []
        for phase in phases:
            lines.append(to_line(phase))
            token = self._tokens.count(phase)
            if token is not None:
                lines.append(to_line(token))
                self._n_tokens += 1
        self._n_phases += len(phases)
        self._server.publish(lines)

    def _forward_kernels(self, tail: OpenClLogTail, limit_bytes: int) -> None:
        try:
            found = tail.read(limit_bytes)
        except MeasurementError:
            self.tail = None
            self._publish_loss("opencl", None)
            return
        from_ns = self._queue.resumed_ns
        kernels: list[LiveKernel] = [each for each in found.kernels if each.enqueue_ns >= from_ns]
        self._n_kernels += len(kernels)
        self._server.publish([to_line(kernel) for kernel in kernels], is_kept=False)
        if found.n_lost:
            self._publish_loss("opencl", found.n_lost)

    def _publish_loss(self, where: str, n_records: int | None) -> None:
        self._server.publish([to_line(LiveLoss(where=where, n_records=n_records))])


class Publication:
    """A local socket at which a worker's records are offered from before it starts until it has ended."""

    def __init__(self, library: ctypes.CDLL, socket_path: Path, processors: frozenset[int] = frozenset()) -> None:
        """Open the socket, and begin to publish; `library` is the probe library.

        The publishing thread runs on `processors`, or where the scheduler likes.

        Raises `MeasurementError` where nothing can listen there.
        """
        with ExitStack() as stack:
            server = stack.enter_context(open_server(socket_path))
            self.queue = stack.enter_context(open_queue(library))
            self._publisher = LivePublisher(self.queue, server)
            self._processors = processors
            self._thread = threading.Thread(target=self._forward, name="perfsuite-live", daemon=True)
            self._thread.start()
            self._stack = stack.pop_all()

    def follow(self, opencl_log: Path) -> None:
        """Publish the kernels of the OpenCL layer's log, too."""
        from perfsuite.records.opencl_log_tail import OpenClLogTail  # NumPy is loaded where there is a log to read

        self._publisher.tail = OpenClLogTail(opencl_log)

    def close(self, *, is_complete: bool = False) -> None:
        """Publish the rest, say that it was the last, and take the socket away; once."""
        if not self._thread.is_alive():
            return
        with self._stack:
            self._publisher.stop()
            self._thread.join()
            self._publisher.finish(is_complete=is_complete)

    def _forward(self) -> None:
        if self._processors:
            os.sched_setaffinity(0, self._processors)
        self._publisher.run()
