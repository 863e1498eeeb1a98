"""What a way to a device has of its own: how it takes a script there, and what its words mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


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
