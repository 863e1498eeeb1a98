"""Pieces of Markdown, as a parser of CommonMark with GitHub's tables reads them."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given

from perfsuite.report.exports.markdown_text import MAX_CHARACTERS, code, one_line, table

from .conftest import WORDS
from .markdown_reader import rendered


@given(WORDS)
def test_any_text_is_one_short_line(text: str) -> None:
    shown = one_line(text)
    assert len(shown) <= MAX_CHARACTERS
    assert len(f"a{shown}b".splitlines()) == 1
    assert not any(unicodedata.category(character) == "Cc" for character in shown)


@pytest.mark.parametrize("text", ["א" * 300, "a" * 198 + "אב" * 9, "a" * 199 + "א"])
def test_what_runs_from_right_to_left_ends_where_it_is_cut(text: str) -> None:
    shown = one_line(text)
    assert shown.endswith("…")
    assert len(shown) <= MAX_CHARACTERS
    assert shown.count("\u2068") == shown.count("\u2069")


def test_usual_names_are_plain_and_a_sign_that_ends_a_span_is_a_number() -> None:
    """Backticks and pipes would end the span or the cell; an address is broken up."""
    assert code("phase/a_b*c/decode") == "`phase/a_b*c/decode`"
    assert code("a`b|c") == "<code>a&#96;b&#124;c</code>"
    assert code("|me@x.y") == "<code>&#124;me<!-- -->&#64;x&#46;y</code>"


@given(WORDS)
def test_any_text_is_read_back_from_code(text: str) -> None:
    """Between other words, and in a cell between others, it is one element of code with this very text."""
    expected = one_line(text)
    sentence = rendered(f"before {code(text)} after")
    assert sentence.inside == [expected]
    assert sentence.outside == ["<p []>", "before ", "<code []>", "</code>", " after", "</p>"]
    cells = rendered(table(["a", "b"], [["left", code(text)], [code(text), "right"]]))
    assert cells.inside == [expected, expected]
    assert cells.outside == rendered(table(["a", "b"], [["left", "`x`"], ["`x`", "right"]])).outside
