"""Many records of bytes at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.report.timeline.bytes import Rows, Texts, constant, decimal, fixed64, side_by_side, thousandths, varint

NUMBERS = st.lists(st.integers(0, 2**63 - 1), max_size=20)


def parts(rows: Rows) -> list[bytes]:
    """Return each record by itself."""
    return [bytes(cells[mask]) for cells, mask in zip(rows.cells, rows.mask, strict=True)]


@given(NUMBERS)
def test_decimals_are_what_python_writes(numbers: list[int]) -> None:
    """No zeros lead, and 0 is 0."""
    assert parts(decimal(np.asarray(numbers, dtype=np.int64))) == [str(each).encode() for each in numbers]


@given(NUMBERS)
def test_thousandths_keep_every_digit(numbers: list[int]) -> None:
    """Nanoseconds in microseconds have three digits behind the point, however large they are."""
    expected = [f"{each // 1000}.{each % 1000:03d}".encode() for each in numbers]
    assert parts(thousandths(np.asarray(numbers, dtype=np.int64))) == expected


@given(NUMBERS)
def test_varints_come_back(numbers: list[int]) -> None:
    """Seven bits a byte, lowest first, no byte more than it takes."""
    for number, content in zip(numbers, parts(varint(np.asarray(numbers, dtype=np.int64))), strict=True):
        assert sum((byte & 0x7F) << 7 * place for place, byte in enumerate(content)) == number
        assert [bool(byte & 0x80) for byte in content] == [True] * (len(content) - 1) + [False]
        assert len(content) == max(1, -(-number.bit_length() // 7))


def test_fields_stand_side_by_side_record_by_record() -> None:
    """What is not chosen takes no room, the lowest byte comes first, and no texts are texts of nothing."""
    assert parts(fixed64(np.asarray([1, 2**40]))) == [bytes([1, 0, 0, 0, 0, 0, 0, 0]), bytes([0] * 5 + [1, 0, 0])]
    texts = Texts([b"one", b"", b"three"]).of(np.asarray([2, 0, 1]))
    odd = decimal(np.asarray([7, 8, 9])).where(np.asarray([True, False, True]))
    rows = side_by_side([constant(b"<", 3), texts, odd, constant(b">", 3)])
    assert parts(rows) == [b"<three7>", b"<one>", b"<9>"]
    assert rows.sizes.tolist() == [8, 5, 3]
    assert rows.joined() == b"<three7><one><9>"
    assert Texts([]).of(np.zeros(0, dtype=np.int64)).joined() == b""


@pytest.mark.parametrize("field", [decimal, thousandths, varint, fixed64])
def test_no_records_are_no_bytes(field: object) -> None:
    """An empty field joins to nothing."""
    assert callable(field)
    assert field(np.zeros(0, dtype=np.int64)).joined() == b""
