"""What cannot be seen is written out."""

from __future__ import annotations

import pytest

from perfsuite.report.visible import is_visible, isolated_name, terminal_text, visible, visible_sentence
from perfsuite.testing.run_files import HOSTILE_NAMES


def test_an_escape_sequence_is_shown_and_not_obeyed() -> None:
    """Hebrew and Arabic keep their letters between isolates; usual names, accents and joined emoji stay as they are."""
    assert terminal_text("\x1b[31mred\x07\r\n") == r"\x1b[31mred\x07\r\n"
    assert terminal_text("מבחן 17") == "\u2068מבחן 17\u2069"
    assert terminal_text("a\u202eb") == r"a\u202eb"
    for name in ("phase/a-q8_0/siso/decode", "é, µs and 👩\u200d💻"):
        assert terminal_text(name) == name


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_what_is_shown_can_be_printed_on_a_line(name: str) -> None:
    shown = terminal_text(name)
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
    assert is_visible(visible(text))


@pytest.mark.parametrize("text", ["", "ffn_up", "é µ ×", "מבחן 17", "👩\u200d💻 🏳️\u200d🌈", "back\\slash", "<b>"])
def test_what_can_be_seen_stays(text: str) -> None:
    assert visible(text) == text
    assert is_visible(text)


def test_isolates_of_our_own_stay_in_a_sentence() -> None:
    """A name from right to left keeps what closes it off from the words beside it, and no other name gets any."""
    sentence = f"{isolated_name('מבחן 17')} took longer than {isolated_name('ffn_up')}"
    assert sentence == "\u2068מבחן 17\u2069 took longer than ffn_up"
    assert visible_sentence(sentence) == sentence


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("\u2067isolated\u2069", r"\u2067isolated\u2069"),
        ("open \u2068 for ever", r"open \u2068 for ever"),
        ("closed \u2069 twice", r"closed \u2069 twice"),
        ("\u2068מבחן\u2069", "\u2068\\u2068מבחן\\u2069\u2069"),
    ],
)
def test_isolates_of_a_name_are_written_out(name: str, shown: str) -> None:
    """What a name brings along to turn the words beside it is seen, in a sentence and elsewhere."""
    assert visible_sentence(isolated_name(name)) == shown


@pytest.mark.parametrize("text", ["a \u2068b", "a\u2069 b", "\u2066a\u2069", "\u2068a\u202e\u2069"])
def test_what_is_not_closed_or_not_ours_is_written_out(text: str) -> None:
    """Only a first-strong isolate with its end, and nothing of the kind within it, is kept."""
    kept = visible_sentence(text)
    assert "\u202e" not in kept
    assert kept.count("\u2068") == kept.count("\u2069")
    assert "\u2066" not in kept
