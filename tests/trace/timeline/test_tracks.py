"""Texts of a timeline."""

from __future__ import annotations

import pytest

from perfsuite.trace.timeline.tracks import MOST_CHARACTERS, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ffn_up-3", "ffn_up-3"),
        ("a\x1b[31mb", "a�[31mb"),
        ("a\nb\tc\0d", "a�b�c�d"),
        ("\u202efdp.exe", "�fdp.exe"),
        ("\ud800", "�"),
        ("µ 漢", "µ 漢"),
    ],
)
def test_what_controls_a_terminal_is_replaced(text: str, shown: str) -> None:
    """Control characters, those that turn the line, and halves of characters do not get through; letters do."""
    assert printable(text) == shown


def test_a_long_text_is_cut() -> None:
    """A text is as long as is allowed, or shorter; the cut is marked."""
    assert printable("x" * MOST_CHARACTERS) == "x" * MOST_CHARACTERS
    assert printable("x" * 9999) == "x" * (MOST_CHARACTERS - 1) + "…"
