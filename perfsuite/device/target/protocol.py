"""What a way to a device has of its own, and how a command there ended."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

#: What is known where a link ended without a word.
LOST_IN_THE_MIDDLE = (
    "the link was lost in the middle: the device rebooted, was cut off, or what answers there was killed; "
    "look whether it is up, and run it again"
)


def last_line(errors: str) -> str:
    """Return the last line that is not empty, without characters that a terminal obeys."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    return "".join(each if each.isprintable() else "?" for each in lines[-1]) if lines else "it said nothing"


class _Said(str):
    """What a pattern found: a text has ``{why:lower}`` in small letters, ``{file:quoted}`` as a shell takes it."""

    def __format__(self, how: str) -> str:
        return {"": str(self), "lower": self.lower(), "quoted": shlex.quote(self)}[how]


def explanation(errors: str, known: Iterable[tuple[str, str]], **others: str) -> str:
    """Return one line: what happened, and what to do; the program's own words where they are none of those known.

    Each row of `known` is a pattern and a text for `str.format`: with the pattern's groups, with `others`, and with all
    that was found as ``{said}``.
    """
    for pattern, text in known:
        if found := re.search(pattern, errors, re.MULTILINE):
            groups = {name: _Said(part) for name, part in found.groupdict(default="").items()}
            return text.format(said=found[0].strip().rstrip("."), **groups, **others)
    told = f"; the last words: {last_line(errors)}" if errors.strip() else ""
    return f"{LOST_IN_THE_MIDDLE}{told}"


#: Longest that a short command may take, connecting included.
COMMAND_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """How a command on a device ended."""

    status: int
    output: bytes
    errors: bytes

    @property
    def text(self) -> str:
        """The output as text, without the last line's end."""
        return self.output.decode("utf-8", "replace").rstrip("\n")

    @property
    def last_words(self) -> str:
        """The last line that is not empty, of the errors or else of the output, fit for a terminal."""
        return last_line((self.errors.strip() or self.output).decode("utf-8", "replace"))


class Link(Protocol):
    """A way by which a POSIX shell on a device can be given a script."""

    @property
    def text(self) -> str:
        """The way in words for messages."""

    def command_line(self, script: str) -> Sequence[str | bytes]:
        """Return what to run here, so that the script is run there with the pipes of that process.

        Raises `LinkError` where this machine lacks what it takes.
        """

    def complaint(self, errors: str) -> str:
        """Say in one line why the link failed, and what to do, from what the process here wrote."""

    def seconds_for(self, size_bytes: int) -> float:
        """Return how long so much takes where the link is slow enough to count, or nothing."""

    def close(self) -> None:
        """End what is shared between commands."""
