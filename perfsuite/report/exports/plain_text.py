"""Words of a run as one line of visible text, for formats that people read."""

from __future__ import annotations

from perfsuite.report.visible import visible

#: Longer names are cut, so that a few of them cannot fill a page.
MAX_CHARACTERS = 200


def one_line(text: str, *, max_characters: int | None = MAX_CHARACTERS) -> str:
    r"""Return text with what cannot be seen as an escape (``\n``, ``\x1b``, ``\u202e``), cut where it is too long.

    With None as `max_characters` nothing is cut.
    """
    if max_characters is None:
        return visible(text)
    shown = visible(text[: max_characters + 1])
    return shown if len(shown) <= max_characters else f"{shown[: max_characters - 1]}…"
