"""Text as a page shows it: what cannot be seen, or turns the order of letters round, is written out."""

from __future__ import annotations

import re
import unicodedata

#: Controls, marks of direction, line separators, spaces without width, and halves of surrogate pairs. What joins an
#: emoji or letters (U+200C, U+200D) is kept, since it changes what is seen.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)

#: Controls, and what XML 1.0 cannot hold in any spelling (its section 2.2, production Char).
_UNWRITTEN = re.compile("[^\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

#: What the suite puts around a name within a sentence, so that the name's direction stays its own.
_FIRST_STRONG, _END = "\u2068", "\u2069"
_ISOLATE = re.compile(f"{_FIRST_STRONG}([^\u2066-\u2069]*){_END}")


def visible(text: str) -> str:
    r"""Return the text with what cannot be seen written as ``\x1b``, ``\n`` or ``\u202e``."""
    return _UNSEEN.sub(_written_out, text) if _UNSEEN.search(text) else text


def without_controls(text: str, *, kept: str = "\t\n\r") -> str:
    r"""Return the text for a file that programs read: a control character that is not kept is written as ``\x1b``."""
    return _UNWRITTEN.sub(lambda found: found[0] if found[0] in kept else _written_out(found), text)


def is_visible(text: str) -> bool:
    """Whether all of the text can be seen as it stands."""
    return _UNSEEN.search(text) is None


def isolated(text: str) -> str:
    """Return a name for a sentence: between isolates where it has letters from right to left, else as it is."""
    is_turned = any(unicodedata.bidirectional(each) in ("R", "AL") for each in text)
    return f"{_FIRST_STRONG}{text}{_END}" if is_turned else text


def isolated_name(name: str) -> str:
    """Return somebody's name for a sentence, with what cannot be seen in it written out."""
    return isolated(visible(name))


def visible_sentence(text: str) -> str:
    """Return a sentence of the suite's own: isolates around names stay where they are closed, all else is written out.

    The names in it must be those of `isolated_name`, or have no isolates of their own.
    """
    outside, *rest = _ISOLATE.split(text)
    told = [visible(outside)]
    for inside, after in zip(rest[::2], rest[1::2], strict=True):
        told.append(f"{_FIRST_STRONG}{visible(inside)}{_END}{visible(after)}")
    return "".join(told)


def _written_out(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


#: Classes of direction that pull what stands beside them along.
_RIGHT_TO_LEFT = {"R", "AL", "AN"}


def terminal_text(text: str) -> str:
    r"""Return the text with what would steer a terminal written out, such as ``\x1b``.

    Where some of it runs from right to left, the whole is isolated, so that what is beside it keeps its place.
    """
    shown = visible(text)
    if any(unicodedata.bidirectional(each) in _RIGHT_TO_LEFT for each in shown):
        return f"{_FIRST_STRONG}{shown}{_END}"
    return shown
