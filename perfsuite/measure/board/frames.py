"""Messages on a stream of bytes: each a length of four bytes, and so much msgpack."""

from __future__ import annotations

import os
import select
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from perfsuite import errors
from perfsuite.errors import LinkError, MeasurementError, PerfsuiteError
from perfsuite.records.codec import pack, unpack

_Read = TypeVar("_Read")


def raised_again(plain: Any) -> PerfsuiteError:
    """Return the error that was reported; one that is not known here is a `MeasurementError`."""
    if not isinstance(plain, dict):
        return MeasurementError(f"received an error that is none: {plain!r}")
    kind = getattr(errors, str(plain.get("class")), MeasurementError)
    text = str(plain.get("text"))
    try:
        return kind(text) if issubclass(kind, PerfsuiteError) else MeasurementError(text)
    except TypeError:  # one that carries more than its text
        return MeasurementError(text)


def understood(kind: str, read: Callable[[Any], _Read], plain: Any) -> _Read:
    """Read what a board has answered; `LinkError` where it is not what was asked for."""
    try:
        return read(plain)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise LinkError(
            f"what the board answered to {kind!r} cannot be read ({type(error).__name__}: {_one_line(error)}); "
            "run 'perfsuite devices setup' with its name"
        ) from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


#: Longest message, bytes. A record of a long run has tens of MB.
FRAME_LIMIT_BYTES = 256 * 2**20

_LENGTH = struct.Struct(">I")

#: Most bytes that are read at once.
_CHUNK_BYTES = 1 << 16

#: How often a writer that nobody listens to looks whether it should go on, s.
_LOOK_S = 0.1


def packed_frame(message: Mapping[str, Any]) -> bytes:
    """Return the bytes of a message.

    Raises `MeasurementError` where it is longer than the limit; the link goes on without it.
    """
    body = pack(dict(message))
    if len(body) > FRAME_LIMIT_BYTES:
        raise MeasurementError(
            f"{len(body)} bytes are too much for the link, which takes {FRAME_LIMIT_BYTES} at once; "
            "record less (fewer tokens, a recorder of coarser events), or measure on the board itself"
        )
    return _LENGTH.pack(len(body)) + body


class StuckError(OSError):
    """Nobody took the rest of a message, so that nothing that follows it can be read."""


def write_frame(descriptor: int, frame: bytes, *, is_over: Callable[[], bool]) -> None:
    """Write a packed message whole, and wait for whoever reads it only as long as it is worth it.

    It is written in pieces that a pipe which is ready takes at once, so that no write ever waits.

    *Source*: pipe(7): a write of PIPE_BUF bytes to a pipe that polls as writable does not block on Linux.

    Raises `StuckError` where `is_over` came true before all of it was taken; `OSError` where nobody reads any more.
    """
    left = memoryview(frame)
    while left:
        if is_writable(descriptor, wait_s=_LOOK_S):
            left = left[os.write(descriptor, left[: select.PIPE_BUF]) :]
        if left and is_over():
            raise StuckError(f"{len(left)} of {len(frame)} bytes of a message were not taken")


def is_writable(descriptor: int, *, wait_s: float = 0.0) -> bool:
    """Whether a short message can be written without waiting, or fails at once since nobody reads any more."""
    ready = select.poll()
    ready.register(descriptor, select.POLLOUT)
    return bool(ready.poll(wait_s * 1000.0))


def read_chunk(descriptor: int) -> bytes:
    """Return what has come in, waiting for it; nothing at the stream's end, or where it broke."""
    try:
        return os.read(descriptor, _CHUNK_BYTES)
    except OSError:
        return b""


class Frames:
    """Takes messages out of what comes in piece by piece."""

    def __init__(self, limit_bytes: int = FRAME_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._held = bytearray()

    @property
    def is_cut(self) -> bool:
        """Whether a part of a message is there, and its end is not."""
        return bool(self._held)

    def messages(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """Yield the messages that are complete with this piece.

        Raises `LinkError` where a message is longer than the limit, or is no message.
        """
        self._held += chunk
        while len(self._held) >= _LENGTH.size:
            (n_bytes,) = _LENGTH.unpack_from(self._held)
            if n_bytes > self._limit_bytes:
                raise LinkError(f"a message of {n_bytes} bytes was announced (limit {self._limit_bytes}): garbage")
            end = _LENGTH.size + n_bytes
            if len(self._held) < end:
                return
            body = bytes(self._held[_LENGTH.size : end])
            del self._held[:end]
            yield _message(body)


def _message(body: bytes) -> dict[str, Any]:
    try:
        message = unpack(body)
    except ValueError as error:
        raise LinkError(f"a message cannot be read ({error}): garbage") from error
    if not isinstance(message, dict) or not isinstance(message.get("kind"), str):
        raise LinkError(f"a message is a {type(message).__name__} without a kind: garbage")
    return message
