"""The blocks that a trace's file is made of: each with its kind, its length and a checksum, one behind the other.

The file begins with `MAGIC`; a block is its head and its payload. Nothing that was written is written again, so that a
file is good up to the end of its last whole block, whoever was killed while writing it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

MAGIC = b"PSTRACE1"
#: Kind, checksum of kind and payload, bytes of the payload.
HEAD = struct.Struct("<4sIQ")


class BlockKind(bytes, Enum):
    """What a block holds."""

    HEADER = b"HEAD"
    TABLES = b"TABL"
    GRAPHS = b"GRPH"
    EVENTS = b"EVNT"
    COUNTERS = b"CNTR"
    EXPERTS = b"EXPT"
    END = b"END."


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block whose checksum holds."""

    kind: BlockKind
    payload: memoryview


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCut:
    """Where the blocks break off, in words."""

    text: str


def block_head(kind: BlockKind, payload: bytes | memoryview) -> bytes:
    """Return what is written in front of a payload."""
    return HEAD.pack(kind.value, _checksum(kind.value, payload), memoryview(payload).nbytes)


def read_blocks(content: bytes) -> Iterator[Block | BlockCut]:
    """Yield the blocks behind the magic, and a last `BlockCut` where something else follows them."""
    at, whole = len(MAGIC), memoryview(content)
    while at < len(content):
        rest = f"{len(content) - at} bytes are left over"
        if at + HEAD.size > len(content):
            yield BlockCut(text=f"cut at byte {at}, {rest}")
            return
        kind, checksum, n_bytes = HEAD.unpack_from(content, at)
        begin, end = at + HEAD.size, at + HEAD.size + n_bytes
        if kind not in _KINDS:
            yield BlockCut(text=f"damaged at byte {at}: a block of kind {kind!r}, {rest}")
            return
        if end > len(content):
            yield BlockCut(text=f"cut at byte {at}, in a block of {n_bytes} bytes; {rest}")
            return
        if _checksum(kind, whole[begin:end]) != checksum:
            yield BlockCut(text=f"damaged at byte {at}: the checksum of {n_bytes} bytes does not hold, {rest}")
            return
        yield Block(kind=BlockKind(kind), payload=whole[begin:end])
        at = end


_KINDS = frozenset(each.value for each in BlockKind)


def _checksum(kind: bytes, payload: bytes | memoryview) -> int:
    return zlib.crc32(payload, zlib.crc32(kind))
