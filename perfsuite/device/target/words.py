"""The words of a program that failed, made fit for one line."""

from __future__ import annotations

#: What is known where a link ended without a word.
LOST_IN_THE_MIDDLE = (
    "the link was lost in the middle: the device rebooted, was cut off, or what answers there was killed; "
    "look whether it is up, and run it again"
)


def last_line(errors: str) -> str:
    """Return the last line that is not empty, without characters that a terminal obeys."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    return "".join(each if each.isprintable() else "?" for each in lines[-1]) if lines else "it said nothing"
