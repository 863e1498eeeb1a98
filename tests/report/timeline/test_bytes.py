"""Many records of bytes at once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.report.timeline.bytes import Rows, varint

NUMBERS = st.lists(st.integers(0, 2**63 - 1), max_size=20)


def parts(rows: Rows) -> list[bytes]:
    return [bytes(cells[mask]) for cells, mask in zip(rows.cells, rows.mask, strict=True)]


@given(NUMBERS)
def test_varints_come_back(numbers: list[int]) -> None:
    """Seven bits a byte, lowest first, no byte more than it takes."""
    for number, content in zip(numbers, parts(varint(np.asarray(numbers, dtype=np.int64))), strict=True):
        assert sum((byte & 0x7F) << 7 * place for place, byte in enumerate(content)) == number
        assert [bool(byte & 0x80) for byte in content] == [True] * (len(content) - 1) + [False]
        assert len(content) == max(1, -(-number.bit_length() // 7))
