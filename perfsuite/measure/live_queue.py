"""The native queue of phases, read in another process while the driver writes it."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from perfsuite.errors import MeasurementError
from perfsuite.measure.native import declare_functions
from perfsuite.records.events import Phase
from perfsuite.records.live import LivePhase

#: Phases that fit between two looks, more than a hundred tokens, and what lies before them.
_CAPACITY, _HEAD_BYTES = 1024, 4096

#: Most phases that one look takes.
AT_ONCE = 256

#: A ``ps_span``, and its phases in the order of ``ps_phase``.
_SPAN = struct.Struct("=4i2q")
PHASES = (
    *(Phase.LOAD, Phase.PREFILL, Phase.DECODE, Phase.COPY, Phase.SOFTMAX, Phase.SAMPLING, Phase.END_TO_END),
    *(Phase.DRAFT_PREFILL, Phase.DRAFT, Phase.EMBED, Phase.ENCODE_IMAGE),
)

_FUNCTIONS = (
    ("ps_live_map", ctypes.c_void_p, (ctypes.c_int,)),
    ("ps_live_unmap", None, (ctypes.c_void_p,)),
    ("ps_live_take", ctypes.c_uint64, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64)),
    ("ps_live_arm", ctypes.c_bool, (ctypes.c_void_p,)),
    ("ps_live_dropped", ctypes.c_uint64, (ctypes.c_void_p,)),
    ("ps_live_resumed_ns", ctypes.c_int64, (ctypes.c_void_p,)),
)


def unpacked_phases(content: bytes | memoryview) -> list[LivePhase]:
    """Return the phases that are in memory one after the other; `ValueError` where they are none."""
    try:
        return [_phase(row) for row in _SPAN.iter_unpack(content)]
    except (struct.error, IndexError) as error:
        raise ValueError(f"{len(content)} bytes are no phases ({error})") from error


class LiveQueue:
    """The consumer's side; use `open_queue`."""

    def __init__(self, library: ctypes.CDLL, queue: int, *, memory_fd: int, event_fd: int) -> None:
        self._library, self._queue = library, ctypes.c_void_p(queue)
        self._spans = ctypes.create_string_buffer(AT_ONCE * _SPAN.size)
        #: What the producer maps.
        self.memory_fd = memory_fd
        #: Readable after the wake-up that `arm` asked for.
        self.event_fd = event_fd

    def take(self) -> list[LivePhase]:
        """Take what is there, at most `AT_ONCE` phases, oldest first."""
        n_taken = self._library.ps_live_take(self._queue, self._spans, AT_ONCE)
        return unpacked_phases(memoryview(self._spans)[: n_taken * _SPAN.size])

    def arm(self) -> bool:
        """Ask for a wake-up at the end of the next phase that is worth one; True where it came already."""
        return bool(self._library.ps_live_arm(self._queue))

    def clear_wake_up(self) -> None:
        """Make `event_fd` unreadable until the next wake-up."""
        with suppress(BlockingIOError):
            os.eventfd_read(self.event_fd)

    def wake(self) -> None:
        """Wake the consumer; from any thread."""
        os.eventfd_write(self.event_fd, 1)

    @property
    def n_dropped(self) -> int:
        """Phases that found the queue full."""
        return int(self._library.ps_live_dropped(self._queue))

    @property
    def resumed_ns(self) -> int:
        """When the last pause of the producer ended: what was begun earlier is no part of the run."""
        return int(self._library.ps_live_resumed_ns(self._queue))


@contextmanager
def open_queue(library: ctypes.CDLL) -> Iterator[LiveQueue]:
    """Make a queue that a producer can be given; `library` is the probe library.

    Raises `MeasurementError` where there is no memory for one.
    """
    declare_functions(library, *_FUNCTIONS)
    memory_fd = os.memfd_create("perfsuite-live")
    event_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
    try:
        os.ftruncate(memory_fd, _HEAD_BYTES + _CAPACITY * _SPAN.size)
        queue = library.ps_live_map(memory_fd)
        if queue is None:
            raise MeasurementError("the live queue cannot be opened: memory is short")
        try:
            yield LiveQueue(library, queue, memory_fd=memory_fd, event_fd=event_fd)
        finally:
            library.ps_live_unmap(queue)
    finally:
        os.close(event_fd)
        os.close(memory_fd)


def _phase(row: tuple[int, int, int, int, int, int]) -> LivePhase:
    phase, repetition, token, n_tokens, start_ns, end_ns = row
    return LivePhase(
        phase=PHASES[phase].value,
        repetition=repetition,
        token=token,
        n_tokens=n_tokens,
        start_ns=start_ns,
        end_ns=end_ns,
    )
