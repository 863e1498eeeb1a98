"""Text as it is shown: what cannot be seen is written out, and letters from right to left turn nothing beside them."""

from __future__ import annotations

import re

#: Controls, marks of direction, line separators, spaces without width, and halves of surrogate pairs. What joins an
#: emoji or letters (U+200C, U+200D) is kept, since it changes what is seen.
_UNSEEN = "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
_RIGHT_TO_LEFT = "[\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
#: What was isolated already, what cannot be seen, and letters from right to left with all but Latin ones between them.
_ODD = re.compile(
    f"(?P<whole>\u2068(?:(?!{_UNSEEN}).)*\u2069)|(?P<unseen>{_UNSEEN})"
    f"|{_RIGHT_TO_LEFT}(?:(?:(?![A-Za-z]|{_UNSEEN}).)*{_RIGHT_TO_LEFT})?"
)

#: Controls, and what XML 1.0 cannot hold in any spelling (its section 2.2, production Char).
_UNWRITTEN = re.compile("[^\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def visible(text: str) -> str:
    r"""Return the text with what cannot be seen written as ``\x1b``, ``\n`` or ``\u202e``.

    Letters from right to left are put between isolates (U+2068, U+2069), so that what is beside them keeps its place.
    Text that has been through here stays as it is.
    """
    return _ODD.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    if found["unseen"]:
        return _written_out(found)
    return found["whole"] or f"\u2068{found[0]}\u2069"


def _written_out(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def is_visible(text: str) -> bool:
    """Whether all of the text can be seen as it stands."""
    return re.search(_UNSEEN, text) is None


#: What does to a terminal what it says is written out there, too.
terminal_text = visible


def without_controls(text: str, *, kept: str = "\t\n\r") -> str:
    r"""Return the text for a file that programs read: a control character that is not kept is written as ``\x1b``."""
    return _UNWRITTEN.sub(lambda found: found[0] if found[0] in kept else _written_out(found), text)
