"""What buffers hold before a launch: drawn from a seed, bit for bit alike here and in the native worker.

A draw is 64 bits, a function of the seed and of its place alone, so that whoever has the seed needs no bytes.
``native/src/launcher/contents.cpp`` is the other half of this file.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfsuite.measure.launches.plan import Content, ContentKind
from perfsuite.workload.ggml_types import GGML_TYPES

Array = NDArray[Any]

#: *Source*: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014: SplitMix64.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_LAST_SHIFT = np.uint64(31)

#: The mean of four whole numbers of 16 bits, and one over the standard deviation of their sum.
_SUM_MEAN = 131_070
_SUM_SCALE = np.float32(1.0 / math.sqrt((65536.0**2 - 1.0) / 3.0))

#: Keeps an F16 value below 2: all bits but the exponent's highest.
_HALF_MASK = b"\xff\xbf"


def counted(limit: int, count: int, *, offset: float = 0.0) -> Content:
    """Return F32 that counts from an offset, and begins again at a limit."""
    return Content(
        kind=ContentKind.CYCLE, n_bytes=4 * count, limit=limit, offset=offset, dtype="float32", shape=(count,)
    )


class Contents:
    """Draws the contents of one launch, each by a seed of its own."""

    def __init__(self, seed: int, name: str) -> None:
        """Begin with the seed of a run and the name of whatever is launched."""
        self._seed, self._name, self._n_drawn = seed, name, 0

    def floats(self, *shape: int, scale: float = 1.0, offset: float = 0.0) -> Content:
        """Return F32 values of mean 0 and standard deviation 1, none beyond 3.5 of them, scaled and moved."""
        return self._content(ContentKind.FLOATS, "float32", shape, scale=scale, offset=offset)

    def halves(self, *shape: int) -> Content:
        """Return F16 values below 2 of either sign, subnormal ones too."""
        return self._content(ContentKind.BITS, "float16", shape, mask=_HALF_MASK)

    def wholes(self, limit: int, *shape: int) -> Content:
        """Return whole numbers from 0 to below a limit."""
        return self._content(ContentKind.WHOLES, "int32", shape, limit=limit)

    def stored(self, type: str, rows: int, columns: int) -> Content:
        """Return weights [rows, columns] as they are in memory; rows of random ggml blocks where quantised."""
        if type == "f32":
            return self.floats(rows, columns)
        if type == "f16":
            return self.halves(rows, columns)
        layout = GGML_TYPES[type.upper()]
        mask = _HALF_MASK + b"\xff" * (layout.block_bytes - len(_HALF_MASK))  # a block begins with its scale
        return self._content(ContentKind.BITS, "uint8", (rows, layout.row_bytes(columns)), mask=mask)

    def _content(self, kind: ContentKind, dtype: str, shape: tuple[int, ...], **rest: Any) -> Content:
        self._n_drawn += 1
        digest = hashlib.sha256(f"{self._seed} {self._name} {self._n_drawn}".encode()).digest()
        return Content(
            kind=kind,
            seed=int.from_bytes(digest[:8], "little") >> 1,
            n_bytes=math.prod(shape) * np.dtype(dtype).itemsize,
            dtype=dtype,
            shape=shape,
            **rest,
        )


def drawn_array(content: Content) -> Array:
    """Draw the values of a buffer."""
    return _ARRAYS[content.kind](content).view(content.dtype).reshape(content.shape)


def _draws(seed: int, count: int) -> NDArray[np.uint64]:
    mixed = np.arange(1, count + 1, dtype=np.uint64) * _STEP + np.uint64(seed)
    for shift, factor in _MIX:
        mixed ^= mixed >> shift
        mixed *= factor
    mixed ^= mixed >> _LAST_SHIFT
    return mixed


def _floats(content: Content) -> Array:
    draws = _draws(content.seed, content.n_bytes // 4)
    sums: Array = draws.view(np.uint16).reshape(-1, 4).sum(axis=1, dtype=np.int32) - _SUM_MEAN
    return sums.astype(np.float32) * _SUM_SCALE * np.float32(content.scale) + np.float32(content.offset)


def _bits(content: Content) -> Array:
    drawn = _draws(content.seed, -(-content.n_bytes // 8)).view(np.uint8)[: content.n_bytes]
    mask = np.frombuffer(content.mask, np.uint8)
    return drawn & np.tile(mask, -(-content.n_bytes // mask.size))[: content.n_bytes]


def _wholes(content: Content) -> Array:
    draws = _draws(content.seed, content.n_bytes // 4) >> np.uint64(32)
    return (draws * np.uint64(content.limit) >> np.uint64(32)).astype(np.int32)


def _cycle(content: Content) -> Array:
    return (np.arange(content.n_bytes // 4) % content.limit).astype(np.float32) + np.float32(content.offset)


_ARRAYS = {
    ContentKind.FLOATS: _floats,
    ContentKind.BITS: _bits,
    ContentKind.WHOLES: _wholes,
    ContentKind.CYCLE: _cycle,
}
