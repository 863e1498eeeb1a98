"""Pieces of Markdown, as a parser of CommonMark with GitHub's tables reads them."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given

from perfsuite.report.exports.markdown_text import MAX_CHARACTERS, code, one_line, table
from perfsuite.report.visible import isolated

from .conftest import WORDS
from .markdown_reader import rendered


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
    """What is cut says so, what just fits is whole, and without a limit all is."""
    assert one_line("x" * 10, max_characters=10) == "x" * 10
    assert one_line("x" * 11, max_characters=10) == "x" * 9 + "…"
    assert one_line("\n" * 6, max_characters=10) == r"\n\n\n\n\…"
    assert one_line("x\n" * 300, max_characters=None) == r"x\n" * 300


def test_usual_names_are_plain_and_a_sign_that_ends_a_span_is_a_number() -> None:
    """Backticks and pipes would end the span or the cell; an address is broken up."""
    assert code("phase/a_b*c/decode") == "`phase/a_b*c/decode`"
    assert code("a`b|c") == "<code>a&#96;b&#124;c</code>"
    assert code("|me@x.y") == "<code>&#124;me<!-- -->&#64;x&#46;y</code>"


@given(WORDS)
def test_any_text_is_read_back_from_code(text: str) -> None:
    """Between other words, and in a cell between others, it is one element of code with this very text."""
    expected = isolated(one_line(text))
    sentence = rendered(f"before {code(text)} after")
    assert sentence.inside == [expected]
    assert sentence.outside == ["<p []>", "before ", "<code []>", "</code>", " after", "</p>"]
    cells = rendered(table(["a", "b"], [["left", code(text)], [code(text), "right"]]))
    assert cells.inside == [expected, expected]
    assert cells.outside == rendered(table(["a", "b"], [["left", "`x`"], ["`x`", "right"]])).outside
