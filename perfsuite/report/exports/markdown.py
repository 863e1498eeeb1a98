"""A comment for a pull request: the verdict, what regressed, and the rest folded away."""

from __future__ import annotations

from collections.abc import Sequence

from perfsuite.report.exports.markdown_page import page
from perfsuite.report.run_file import RunFile

#: Not shown; by it, whoever posts comments finds the one to replace.
MARKER = "<!-- perfsuite: comment -->"

#: Characters that GitHub takes in a comment. *Source*: its answer to more: "Body is too long (maximum is 65536
#: characters)".
LIMIT_CHARACTERS = 65_536


def comment_text(runs: Sequence[RunFile]) -> str:
    """Return the comment, of fewer than 65,536 characters however many cases there are."""
    room = LIMIT_CHARACTERS - len(MARKER) - 2
    return f"{MARKER}\n{page(runs, limit=room, measure=_utf16_units)}"


def _utf16_units(text: str) -> int:
    """Count as JavaScript does, which is never less than what other ways of counting characters give."""
    return len(text) + sum(character > "\uffff" for character in text)
