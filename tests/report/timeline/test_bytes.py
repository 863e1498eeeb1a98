"""Many records of bytes at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.report.timeline.bytes import Rows, constant, fixed64, side_by_side, varint

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


def test_fields_stand_side_by_side_record_by_record() -> None:
    """What is not chosen takes no room, and the lowest byte comes first."""
    assert parts(fixed64(np.asarray([1, 2**40]))) == [bytes([1, 0, 0, 0, 0, 0, 0, 0]), bytes([0] * 5 + [1, 0, 0])]
    odd = varint(np.asarray([7, 8, 300])).where(np.asarray([True, False, True]))
    rows = side_by_side([constant(b"<", 3), odd, constant(b">", 3)])
    assert parts(rows) == [b"<\x07>", b"<>", b"<\xac\x02>"]
    assert rows.sizes.tolist() == [3, 2, 4]
    assert rows.joined() == b"<\x07><><\xac\x02>"


@pytest.mark.parametrize("field", [varint, fixed64])
def test_no_records_are_no_bytes(field: object) -> None:
    assert callable(field)
    assert field(np.zeros(0, dtype=np.int64)).joined() == b""
