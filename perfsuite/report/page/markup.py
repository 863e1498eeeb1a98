"""Text as the templates place it: escaped, and breaking over lines where a reader expects it."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from perfsuite.report.visible import visible, visible_sentence

_NO_BREAK_SPACE = "\u00a0"
#: The space between a figure and its unit, or between a sign of multiplication and its figure.
_WITHIN_FIGURE = re.compile(
    r"(?<=\d) (?=(?:%|[nµm]?s|[KMGT]?i?B(?:/s)?|[MGT]?FLOP/s|[MG]Hz|°C|min)(?![\w/]))|(?<=×) (?=\d)"
)
#: An option of a command, of which the hyphens invite a break.
_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
#: Where a name may be broken.
_JOINT = re.compile(r"[/_](?=\w)")


def as_sentence(text: str) -> Markup:
    """Keep figures with their units and options in one piece, and the isolates around names."""
    return _with_whole_options(_WITHIN_FIGURE.sub(_NO_BREAK_SPACE, visible_sentence(text)))


def as_name(text: str) -> Markup:
    """Offer breaks between the parts of a name, after ``/`` and ``_``."""
    return Markup(_JOINT.sub(r"\g<0><wbr>", str(escape(visible(text)))))


def as_command(text: str) -> Markup:
    """Keep options in one piece; the text that is copied stays as it is."""
    return _with_whole_options(visible(text))


def _with_whole_options(text: str) -> Markup:
    return Markup(_OPTION.sub(r'<span class="whole">\g<0></span>', str(escape(text))))
