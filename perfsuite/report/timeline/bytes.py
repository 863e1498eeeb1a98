"""Many records of bytes at once: fields side by side in a matrix, one row a record, and a mask of the bytes that count.

A field is as wide as its widest value; what a narrower one leaves free is masked out when the rows are joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.integer]


@dataclass(frozen=True, kw_only=True)
class Rows:
    """A field of all records: `cells` and `mask` are of one shape, records x bytes."""

    cells: Bytes
    mask: Mask

    @cached_property
    def sizes(self) -> Ints:
        """How many bytes each record has."""
        sizes: Ints = np.count_nonzero(self.mask, axis=1)
        return sizes

    def where(self, chosen: Mask) -> Rows:
        """Return the field for the chosen records, and nothing for the others."""
        return Rows(cells=self.cells, mask=self.mask & chosen[:, np.newaxis])

    def joined(self) -> bytes:
        """Return the records one behind the other."""
        return self.cells[self.mask].tobytes()


def side_by_side(fields: Sequence[Rows]) -> Rows:
    """Return records that have all the fields in order."""
    return Rows(
        cells=np.concatenate([each.cells for each in fields], axis=1),
        mask=np.concatenate([each.mask for each in fields], axis=1),
    )


def constant(content: bytes, n_records: int) -> Rows:
    """Return a field that is the same in all records."""
    cells = np.broadcast_to(np.frombuffer(content, dtype=np.uint8), (n_records, len(content)))
    return Rows(cells=cells, mask=np.ones(cells.shape, dtype=np.bool_))


def varint(values: Numbers) -> Rows:
    """Return numbers from 0 on as protobuf writes them: seven bits a byte, the lowest first.

    *Source*: protobuf.dev, Encoding, 'Base 128 Varints'.
    """
    rest = values.astype(np.int64)
    width = max(1, -(-int(rest.max()).bit_length() // 7)) if len(rest) else 1
    cells = np.empty((len(rest), width), dtype=np.uint8)
    mask = np.empty(cells.shape, dtype=np.bool_)
    for place in range(width):
        mask[:, place] = (rest > 0) | (place == 0)
        more = rest >> 7
        cells[:, place] = (rest & 0x7F) | np.where(more > 0, 0x80, 0)
        rest = more
    return Rows(cells=cells, mask=mask)


def fixed64(values: Numbers) -> Rows:
    """Return numbers as eight bytes, the lowest first."""
    cells = np.ascontiguousarray(values.astype("<u8")).view(np.uint8).reshape(-1, 8)
    return Rows(cells=cells, mask=np.ones(cells.shape, dtype=np.bool_))
