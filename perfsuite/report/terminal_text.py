"""Text of somebody's choice, such as a case's name, made safe for a terminal."""

from __future__ import annotations

import re
import unicodedata

from perfsuite.report.visible import visible

#: Classes of direction that pull what stands beside them along.
_RIGHT_TO_LEFT = {"R", "AL", "AN"}

_FIRST_STRONG_ISOLATE, _POP_ISOLATE = "\u2068", "\u2069"

_PARTS = re.compile(r"[^/_-]*[/_-]*")


def terminal_text(text: str) -> str:
    r"""Return the text with what would steer a terminal written out, such as ``\x1b``.

    Where some of it runs from right to left, the whole is isolated, so that what stands beside it keeps its place.
    """
    shown = visible(text)
    if any(unicodedata.bidirectional(each) in _RIGHT_TO_LEFT for each in shown):
        return f"{_FIRST_STRONG_ISOLATE}{shown}{_POP_ISOLATE}"
    return shown


def folded_name(name: str, width: int) -> str:
    """Break a name into lines after ``/``, ``-`` or ``_``; a part of it that is longer than `width` stays whole."""
    lines = [""]
    for part in _PARTS.findall(name):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)
