"""One line of visible text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given

from perfsuite.report.exports.plain_text import MAX_CHARACTERS, one_line

from .conftest import WORDS


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("decode", "decode"),
        ("two\nlines", r"two\nlines"),
        ("\x1b[31m", r"\x1b[31m"),
        ("a\u202eb", r"a\u202eb"),
        ("a\u2028b\ud800", r"a\u2028b\ud800"),
        ("a\u200bb\ufeff\u00ad\u2060", r"a\u200bb\ufeff\xad\u2060"),
        ("שלום 🧪", "שלום 🧪"),
    ],
)
def test_what_cannot_be_seen_is_an_escape(text: str, shown: str) -> None:
    """Control characters, overrides of direction and line separators are escapes; letters and pictures stay."""
    assert one_line(text) == shown


@given(WORDS)
def test_any_text_is_one_short_line(text: str) -> None:
    """Whatever the text, no reader of lines breaks it, and it is short."""
    shown = one_line(text)
    assert len(shown) <= MAX_CHARACTERS
    assert len(f"a{shown}b".splitlines()) == 1
    assert not any(unicodedata.category(character) == "Cc" for character in shown)


def test_a_long_text_ends_with_an_ellipsis() -> None:
    """What is cut says so; what just fits is whole."""
    assert one_line("x" * 10, max_characters=10) == "x" * 10
    assert one_line("x" * 11, max_characters=10) == "x" * 9 + "…"
    assert one_line("\n" * 6, max_characters=10) == r"\n\n\n\n\…"


def test_what_is_not_to_be_cut_is_whole() -> None:
    """Without a limit the text is as long as it is."""
    assert one_line("x\n" * 300, max_characters=None) == r"x\n" * 300
