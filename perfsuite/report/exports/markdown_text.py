"""Pieces of Markdown in which the words of a run are text: no markup, no link, nobody who is mentioned."""

from __future__ import annotations

from collections.abc import Sequence

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
    if len(shown) <= max_characters:
        return shown
    cut = shown[: max_characters - 1].rstrip("\u2068")
    is_open = cut.count("\u2068") > cut.count("\u2069")  # an isolate that `visible` began ends with the text
    return f"{cut[:-1]}\u2069…" if is_open else f"{cut}…"


#: What a span of code within a table cannot hold on every renderer.
_NO_SPAN = frozenset("`|")


def code(text: str, *, max_characters: int | None = MAX_CHARACTERS) -> str:
    """Return text as code, where neither Markdown nor GitHub looks for markup, links, mentions and issues.

    A backtick or a pipe cannot be in a span of code that is in a table; text with one becomes an element in which
    each sign is written by its number.

    *Source*: GitHub Flavored Markdown 0.29, sections 6.3 (code spans), 6.2 (entities are text) and 4.10 (tables).
    """
    shown = one_line(text, max_characters=max_characters)
    if shown and shown == shown.strip() and _NO_SPAN.isdisjoint(shown):
        return f"`{shown}`"
    return f"<code>{''.join(map(_by_number, shown))}</code>"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already, each on one line and without a bare pipe."""
    rule = ["---"] * len(header)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (header, rule, *rows))


def _by_number(character: str) -> str:
    """Write signs by their number; the comment keeps what looks like an address from becoming a link."""
    if character.isalnum() or character == " " or not character.isascii():
        return character
    return f"{'<!-- -->' if character == '@' else ''}&#{ord(character)};"
