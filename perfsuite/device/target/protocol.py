"""What every way to a device can do: run a command there, put a file there, get one from there."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
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


class Target(Protocol):
    """A way to a device. Arguments, paths and variables may hold any character but NUL; they arrive unchanged."""

    @property
    def text(self) -> str:
        """The way in words for messages, such as ``ssh root@board:2222``."""

    def run(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        limit_s: float = COMMAND_LIMIT_S,
    ) -> Completed:
        """Run a command there and wait for it; past the limit, or when the wait is interrupted, it is ended there, too.

        A command that fails is no error: its status says so. ``~/`` at the beginning of the first word is the home
        there. Raises `LinkError` where the device cannot be reached or the link is lost, `MeasurementError` past the
        limit, or beyond 16 MiB of output; of the errors the last MiB is kept.
        """

    def start(self, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start a command there, with pipes for its input, output and errors.

        It is out of reach of a Ctrl-C here. What is started has to end by itself when its input ends: that is all that
        it sees of a lost link.
        """

    def put(self, source: Path, destination: str, *, limit_s: float = 3600.0) -> None:
        """Copy a file there, whole or not at all; folders are made. What is there with the same content stays.

        Raises `LinkError` as `run` does, and where it does not arrive whole (a full disk, with the device's own words).
        """

    def get(self, source: str, destination: Path, *, limit_s: float = 3600.0) -> None:
        """Copy a file from there, whole or not at all; as `put`."""

    def link_complaint(self, errors: bytes) -> str:
        """Say in one line why the link ended, from what a started command left in its errors."""

    def close(self) -> None:
        """End a shared connection."""
