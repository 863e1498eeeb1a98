"""What cannot be seen is written out."""

from __future__ import annotations

import pytest

from perfsuite.report.visible import is_visible, visible
from perfsuite.testing.run_files import HOSTILE_NAMES


def test_an_escape_sequence_is_shown_and_not_obeyed() -> None:
    """Hebrew and Arabic keep their letters between isolates; usual names, accents and joined emoji stay as they are."""
    assert visible("\x1b[31mred\x07\r\n") == r"\x1b[31mred\x07\r\n"
    assert visible("מבחן 17") == "\u2068מבחן\u2069 17"
    assert visible("a\u202eb") == r"a\u202eb"
    for name in ("phase/a-q8_0/siso/decode", "é, µs and 👩\u200d💻"):
        assert visible(name) == name


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_what_is_shown_can_be_printed_on_a_line(name: str) -> None:
    shown = visible(name)
    assert len(shown.splitlines()) == 1
    assert not any(ord(each) < 32 or 0x7F <= ord(each) < 0xA0 for each in shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", r"\x1b[31m"),
        ("\u2067a\u2069", r"\u2067a\u2069"),
        ("zero\u200bwidth", r"zero\u200bwidth"),
        ("half \ud800", r"half \ud800"),
        ("a\u2028b\ufeff\u00ad\u2060", r"a\u2028b\ufeff\xad\u2060"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, shown: str) -> None:
    """Controls, marks of direction, spaces without width and halves of characters have an escape in their place."""
    assert visible(text) == shown
    assert not is_visible(text)


@pytest.mark.parametrize("text", ["", "ffn_up", "é µ ×", "👩\u200d💻 🏳️\u200d🌈", "back\\slash", "<b>"])
def test_what_can_be_seen_stays(text: str) -> None:
    assert visible(text) == text
    assert is_visible(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("מבחן 17 took longer than ffn_up", "\u2068מבחן\u2069 17 took longer than ffn_up"),
        ("a/שלום עולם/b", "a/\u2068שלום עולם\u2069/b"),
        ("open \u2068 for ever", r"open \u2068 for ever"),
        ("closed \u2069 twice", r"closed \u2069 twice"),
        ("\u2067מבחן\u2069", "\\u2067\u2068מבחן\u2069\\u2069"),
        ("\u2068a\u202e\u2069", r"\u2068a\u202e\u2069"),
    ],
)
def test_letters_from_right_to_left_are_isolated(text: str, shown: str) -> None:
    """What turns the words beside it is written out, unless it is a first-strong isolate with its end."""
    assert visible(text) == shown


@pytest.mark.parametrize("name", [*HOSTILE_NAMES, "מבחן 17", "\u2068a\u2069 b"])
def test_what_was_shown_once_is_shown_alike(name: str) -> None:
    assert visible(visible(name)) == visible(name)
    assert visible(name).count("\u2068") == visible(name).count("\u2069")
