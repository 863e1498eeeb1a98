"""Tokens counted by a GGUF's own tokenizer."""

from __future__ import annotations

from pathlib import Path

import pytest
from gguf import GGUFWriter

from perfsuite.errors import GgufError
from perfsuite.measure.token_counts import count_tokens

#: Control, byte and normal, as GGUF numbers the types of tokens.
_CONTROL, _BYTE, _NORMAL = 3, 6, 1


def vocabulary(path: Path, *words: str, tokenizer: str = "llama") -> Path:
    """Write a GGUF without tensors whose tokenizer knows bytes and a few words; a word is what follows a space."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *words]
    writer = GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_tokenizer_model(tokenizer)
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * 260 + [10.0] * len(words))
    writer.add_token_types([_CONTROL] * 3 + [_BYTE] * 256 + [_NORMAL] * (1 + len(words)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    return path


def test_tokens_are_counted_by_the_files_own_tokenizer(tmp_path: Path) -> None:
    """A text begins with one token of its own and a space; letters that the file does not know are bytes."""
    path = vocabulary(tmp_path / "v.gguf", "a", "▁a")
    assert count_tokens(path, ["a", "a a a", "b", "\N{GREEK SMALL LETTER ALPHA}"]) == (2, 4, 3, 4)
    assert count_tokens(path, []) == ()


def test_a_file_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GgufError, match="has no tokenizer; name a GGUF that has one"):
        count_tokens(vocabulary(tmp_path / "v.gguf", tokenizer="no_vocab"), ["a"])
    with pytest.raises(GgufError, match="no such file"):
        count_tokens(tmp_path / "none.gguf", ["a"])
