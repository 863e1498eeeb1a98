"""The blocks of a trace's file."""

from __future__ import annotations

from perfsuite.records.trace_blocks import HEAD, MAGIC, Block, BlockCut, BlockKind, block_head, read_blocks

TWO = b"".join(
    (MAGIC, block_head(BlockKind.TABLES, b"one"), b"one", block_head(BlockKind.EVENTS, b"second"), b"second")
)


def read(content: bytes) -> list[tuple[BlockKind, bytes] | str]:
    """Return kind and payload of each block, and the words of a cut."""
    return [
        (block.kind, bytes(block.payload)) if isinstance(block, Block) else block.text for block in read_blocks(content)
    ]


def test_blocks_come_back_in_their_order() -> None:
    """Each has its kind and its payload."""
    assert read(TWO) == [(BlockKind.TABLES, b"one"), (BlockKind.EVENTS, b"second")]


def test_a_file_without_blocks_has_none() -> None:
    """Magic alone is neither a block nor a cut."""
    assert read(MAGIC) == []


def test_a_cut_is_told_at_its_place() -> None:
    """What is left over begins at the first byte of the block that is not whole."""
    at = len(MAGIC) + HEAD.size + 3
    assert read(TWO[:-1])[1:] == [f"cut at byte {at}, in a block of 6 bytes; {HEAD.size + 5} bytes are left over"]
    assert read(TWO[: at + 5])[1:] == [f"cut at byte {at}, 5 bytes are left over"]


def test_a_wrong_checksum_ends_the_file() -> None:
    """A payload or a kind that is not as it was written is damage."""
    damaged = TWO.replace(b"second", b"s3cond")
    assert str(read(damaged)[1]).startswith("damaged at byte 27: the checksum of 6 bytes does not hold")
    renamed = TWO.replace(BlockKind.EVENTS.value, BlockKind.EXPERTS.value)
    assert str(read(renamed)[1]).startswith("damaged at byte 27: the checksum")
    unknown = TWO.replace(BlockKind.EVENTS.value, b"WHAT")
    assert str(read(unknown)[1]).startswith("damaged at byte 27: a block of kind b'WHAT'")


def test_a_length_beyond_the_file_is_a_cut() -> None:
    """However large a length says that a block is, nothing is reserved for it."""
    (cut,) = read_blocks(MAGIC + HEAD.pack(BlockKind.EVENTS.value, 0, 1 << 60))
    assert isinstance(cut, BlockCut)
    assert cut.text.startswith("cut at byte 8, in a block of 1152921504606846976 bytes")
