"""Single fields of protobuf messages. *Source*: protobuf.dev, Encoding."""

from __future__ import annotations


def tag(field: int, wire_type: int) -> bytes:
    """Return what begins a field: 0 a number, 1 eight bytes, 2 bytes with their length."""
    return _varint(field << 3 | wire_type)


def number_field(field: int, value: int) -> bytes:
    """Return a number from 0 on."""
    return tag(field, 0) + _varint(value)


def bytes_field(field: int, content: bytes) -> bytes:
    """Return bytes, or a message."""
    return tag(field, 2) + _varint(len(content)) + content


def text_field(field: int, text: str) -> bytes:
    """Return a text."""
    return bytes_field(field, text.encode("utf-8"))


def packet_of(content: bytes) -> bytes:
    """Return a packet of a Perfetto trace."""
    return bytes_field(1, content)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
