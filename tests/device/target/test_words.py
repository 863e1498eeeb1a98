"""What a failed program said last, on one line."""

from __future__ import annotations

from perfsuite.device.target.words import last_line


def test_the_last_line_is_told() -> None:
    """Empty lines at the end do not count."""
    assert last_line("first\nsecond \r\n\n") == "second"


def test_a_terminal_has_nothing_to_obey() -> None:
    """Control characters of what a device said are not printed."""
    assert last_line("a\x1b[31mb") == "a?[31mb"


def test_nothing_is_said_to_be_nothing() -> None:
    """Where there is no word, that is told."""
    assert last_line(" \n") == "it said nothing"
