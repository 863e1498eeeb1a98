"""Single fields of protobuf messages."""

from __future__ import annotations

import pytest

from perfsuite.report.timeline.protobuf import bytes_field, number_field, packet_of, tag, text_field


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (number_field(1, 150), "089601"),
        (number_field(1, 0), "0800"),
        (text_field(2, "testing"), "120774657374696e67"),
        (bytes_field(3, number_field(1, 150)), "1a03089601"),
        (tag(47, 1), "f902"),
        (packet_of(b""), "0a00"),
        (text_field(2, "µ"), "1202c2b5"),
    ],
)
def test_fields_are_those_of_the_encoding_guide(content: bytes, expected: str) -> None:
    """The examples of protobuf.dev's Encoding page: 150, the string and the embedded message; and tags of two bytes."""
    assert content.hex() == expected
