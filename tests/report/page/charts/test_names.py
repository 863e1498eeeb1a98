"""Names as figures have room for them."""

from __future__ import annotations

import pytest

from perfsuite.report.page.charts.names import readable, short_names
from perfsuite.testing.run_files import HOSTILE_NAMES


@pytest.mark.parametrize("most", [8, 22])
def test_short_names_are_short_and_no_two_are_alike(most: int) -> None:
    """Hostile names, and twins of each, get labels of their own."""
    names = [*HOSTILE_NAMES, *HOSTILE_NAMES, "x" * 99, "x" * 98 + "y", "x" * 50 + "z" + "x" * 48, "a", "a (2)", "a"]
    short = short_names(names, most)
    assert len(set(short)) == len(short) == len(names)
    assert max(map(len, short)) <= most + len("\u2068\u2069") + len(" (10)") - 4


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_readable_name_does_not_turn_the_words_beside_it(name: str) -> None:
    kept = readable(name)
    assert not any(each < " " or each in "\u202a\u202b\u202d\u202e\u2067" for each in kept)
    assert kept.count("\u2068") == kept.count("\u2069")
