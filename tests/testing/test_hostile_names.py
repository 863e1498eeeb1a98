"""The names that nobody may forget to escape."""

from __future__ import annotations

import unicodedata

from perfsuite.testing.hostile_names import HOSTILE_NAMES


def test_no_two_are_alike() -> None:
    """Every name is there once, also for who ignores space around it."""
    assert len({name.strip() for name in HOSTILE_NAMES}) == len(HOSTILE_NAMES)


def test_every_character_with_a_meaning_somewhere_is_among_them() -> None:
    """Characters that HTML, Markdown, CSV, labels, templates or a terminal take for their own occur."""
    used = set("".join(HOSTILE_NAMES))
    assert set("<>&\"'`{}[]()|\\%$#*_~!=+-@,;:/") | {"\n", "\t", "\x1b"} <= used


def test_directions_and_joined_pictures_are_among_them() -> None:
    """Right-to-left letters, the override of the direction, and pictures that are joined occur."""
    used = set("".join(HOSTILE_NAMES))
    assert {"R", "AL", "RLO"} <= {unicodedata.bidirectional(each) for each in used}
    assert "\u200d" in used


def test_one_is_long_and_all_can_be_written() -> None:
    """One name has 300 characters, and UTF-8 can hold each."""
    assert max(map(len, HOSTILE_NAMES)) == 300
    assert [name.encode().decode() for name in HOSTILE_NAMES] == list(HOSTILE_NAMES)
