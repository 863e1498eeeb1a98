"""What a page says that a command prints, compared with what it printed: like doctest, ``...`` stands for anything."""

from __future__ import annotations

import re
from collections.abc import Sequence

_ANYTHING = "..."


def mismatch(shown: Sequence[str], printed: str) -> str | None:
    """Say which line of a page the output does not have; None where it is as shown.

    ``...`` by itself stands for any lines, within a line for anything in it. Empty lines and the number of spaces do
    not count, for columns are as wide as their longest number.
    """
    wanted, found = _bare_lines(shown), _bare_lines(printed.splitlines())
    if re.fullmatch(_pattern(wanted), _text(found)):
        return None
    fitting = 0
    while fitting < len(wanted) and re.match(_pattern(wanted[: fitting + 1]), _text(found)):
        fitting += 1
    if fitting == len(wanted):
        return f"the output goes on after {wanted[-1]!r}"
    return f"the output has no line {wanted[fitting]!r} where the page has it"


def _bare_lines(lines: Sequence[str]) -> list[str]:
    return [bare for line in lines if (bare := " ".join(line.split()))]


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _pattern(lines: Sequence[str]) -> str:
    return "".join(r"(?:.*\n)*?" if line == _ANYTHING else rf"{_line_pattern(line)}\n" for line in lines)


def _line_pattern(line: str) -> str:
    """Return the pattern of a line; what stands for anything may be nothing, with the space beside it."""
    parts = [re.escape(part.strip()) for part in line.split(_ANYTHING)]
    return r".*?".join(parts)
