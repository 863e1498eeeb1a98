"""What a way to a device has of its own, and how a command there ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from perfsuite.device.target.words import last_line

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

    def close(self) -> None:
        """End what is shared between commands."""
