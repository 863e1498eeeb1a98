"""Text of somebody's choice on a terminal."""

from __future__ import annotations

import pytest

from perfsuite.report.terminal_text import folded_name, terminal_text
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
    """No name breaks the line or holds a control."""
    shown = terminal_text(name)
    assert len(shown.splitlines()) == 1
    assert not any(ord(each) < 32 or 0x7F <= ord(each) < 0xA0 for each in shown)


def test_a_name_folds_at_its_parts() -> None:
    """Lines end after a slash, a dash or an underscore, and together are the name."""
    assert folded_name("operator/a-q8_0/decode", 12) == "operator/a-\nq8_0/decode"
    assert folded_name("unbreakable/x", 4) == "unbreakable/\nx"
    assert folded_name("", 4) == ""
