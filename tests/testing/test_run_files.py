"""Made-up runs."""

from __future__ import annotations

import unicodedata

from perfsuite.testing.run_files import HOSTILE_NAMES


def test_every_character_with_a_meaning_somewhere_is_among_them() -> None:
    """What HTML, Markdown, CSV, labels, templates or a terminal take for their own; each name once, one of 300.

    So are right-to-left letters, the override of the direction, and pictures that are joined.
    """
    used = set("".join(HOSTILE_NAMES))
    assert set("<>&\"'`{}[]()|\\%$#*_~!=+-@,;:/") | {"\n", "\t", "\x1b", "\u200d"} <= used
    assert {"R", "AL", "RLO"} <= {unicodedata.bidirectional(each) for each in used}
    assert len({name.strip() for name in HOSTILE_NAMES}) == len(HOSTILE_NAMES)
    assert max(map(len, HOSTILE_NAMES)) == 300
    assert [name.encode().decode() for name in HOSTILE_NAMES] == list(HOSTILE_NAMES)
