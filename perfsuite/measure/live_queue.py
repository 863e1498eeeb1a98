"""The native queue of phases, read while the driver writes it."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from perfsuite.errors import MeasurementError
from perfsuite.measure.llama import PHASES
from perfsuite.records.live import LivePhase

#: Phases that fit between two looks: more than a hundred tokens.
_CAPACITY = 1024

#: Most phases that one look takes.
AT_ONCE = 256

#: A ``ps_span``.
_SPAN = struct.Struct("=4i2q")


class LiveQueue:
    """The consumer's side; use `open_queue`."""

    def __init__(self, library: ctypes.CDLL, event_fd: int) -> None:
        self._library = library
        self._spans = ctypes.create_string_buffer(AT_ONCE * _SPAN.size)
        #: Readable after the wake-up that `arm` asked for.
        self.event_fd = event_fd

    def take(self) -> list[LivePhase]:
        """Take what is there, at most `AT_ONCE` phases, oldest first."""
        n_taken = self._library.ps_live_take(self._spans, ctypes.c_uint64(AT_ONCE))
        return [_phase(row) for row in _SPAN.iter_unpack(memoryview(self._spans)[: n_taken * _SPAN.size])]

    def arm(self) -> bool:
        """Ask for a wake-up at the end of the next phase that is worth one; True where it came already."""
        return bool(self._library.ps_live_arm())

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
        return int(self._library.ps_live_dropped())


@contextmanager
def open_queue(library: ctypes.CDLL) -> Iterator[LiveQueue]:
    """Open the process's queue; its consumer must have ended before this does.

    Raises `MeasurementError` where the process has a queue already, or no memory for one.
    """
    for name, returned in (("take", ctypes.c_uint64), ("dropped", ctypes.c_uint64), ("arm", ctypes.c_bool)):
        getattr(library, f"ps_live_{name}").restype = returned
    library.ps_live_open.restype = ctypes.c_bool
    event_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
    try:
        if not library.ps_live_open(ctypes.c_uint64(_CAPACITY), ctypes.c_int(event_fd)):
            raise MeasurementError("the live queue cannot be opened: it is open, or memory is short")
        try:
            yield LiveQueue(library, event_fd)
        finally:
            library.ps_live_close()
    finally:
        os.close(event_fd)


@contextmanager
def paused(library: ctypes.CDLL) -> Iterator[None]:
    """Keep what the driver does meanwhile out of the queue; by the driver's own thread."""
    library.ps_live_pause(ctypes.c_bool(True))
    try:
        yield
    finally:
        library.ps_live_pause(ctypes.c_bool(False))


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
