"""A device whose shell can be given scripts: what every way to a device makes of its link."""

from __future__ import annotations

import io
import os
import re
import secrets
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO
from weakref import WeakKeyDictionary

from perfsuite.device.target import copying
from perfsuite.device.target.exchange import Exchange, Take
from perfsuite.device.target.protocol import COMMAND_LIMIT_S, Completed, Link
from perfsuite.device.target.shell import run_script, start_script
from perfsuite.errors import LinkError, MeasurementError

#: How much longer than a command's limit is waited here: to connect, to end it there, and to hear of that.
_GRACE_S = 20.0

#: Most of a command's output that is kept; what is longer belongs into a file, which `get` takes piece by piece.
OUTPUT_LIMIT_BYTES = 16 << 20

#: What ``timeout`` exits with past the limit, and what is ended by a timer; where either had to kill.
_ENDED_STATUSES = (124, 143, 137)

#: What was started keeps its shared connection, even where nobody keeps the target.
_LINKS: WeakKeyDictionary[subprocess.Popen[bytes], Link] = WeakKeyDictionary()


class Target:
    """A way to a device. Arguments, paths and variables may hold any character but NUL; they arrive unchanged."""

    def __init__(self, link: Link) -> None:
        self._link = link

    @property
    def text(self) -> str:
        """The way in words for messages, such as ``ssh root@board:2222``."""
        return self._link.text

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
        return self._run(command, environment or {}, io.BytesIO(stdin), len(stdin), limit_s)

    def run_with_file(self, command: Sequence[str], source: IO[bytes], *, limit_s: float) -> Completed:
        """Run a command there with the rest of a file of this machine as its input."""
        size_bytes = os.fstat(source.fileno()).st_size - source.tell()
        return self._run(command, {}, source, size_bytes, limit_s)

    def _run(
        self, command: Sequence[str], environment: Mapping[str, str], source: IO[bytes], size_bytes: int, limit_s: float
    ) -> Completed:
        output = bytearray()

        def keep(chunk: bytes) -> None:
            output.extend(chunk)
            if len(output) > OUTPUT_LIMIT_BYTES:
                raise MeasurementError(
                    f"{self.text}: {command[0]!r} wrote more than {OUTPUT_LIMIT_BYTES >> 20} MiB and was ended; "
                    "let it write what is long into a file"
                )

        completed = self._exchanged(command, environment, (source, size_bytes), keep, limit_s)
        return Completed(status=completed.status, output=bytes(output), errors=completed.errors)

    def _exchanged(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        sent: tuple[IO[bytes], int],
        take: Take,
        limit_s: float,
    ) -> Completed:
        """Run a command, give its output on, and return how it ended, without the output."""
        mark = f"perfsuite-ended-{secrets.token_hex(8)}"
        since = time.monotonic()
        process = self._popen(run_script(command, environment, limit_s, mark, sent[1]))
        try:
            errors = Exchange(process, *sent).carry(take, limit_s + _GRACE_S)
        except TimeoutError:
            raise self._past_limit(command, limit_s) from None
        return self._ended(command, mark, errors, limit_s if time.monotonic() - since >= limit_s else None)

    def _ended(self, command: Sequence[str], mark: str, errors: bytes, passed_limit_s: float | None) -> Completed:
        found = re.search(rf"\n{mark} (\d+)\n".encode(), errors)
        if found is None:
            raise LinkError(f"{self.text}: {self.link_complaint(errors)}")
        completed = Completed(status=int(found[1]), output=b"", errors=errors[: found.start()])
        if passed_limit_s is not None and completed.status in _ENDED_STATUSES:
            raise self._past_limit(command, passed_limit_s)
        return completed

    def _past_limit(self, command: Sequence[str], limit_s: float) -> MeasurementError:
        return MeasurementError(
            f"{self.text}: {command[0]!r} ran past its limit of {limit_s:g} s and was ended; "
            "look what keeps the device busy, or allow it more"
        )

    def start(self, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start a command there, with pipes for its input, output and errors.

        It is out of reach of a Ctrl-C here. What is started has to end by itself when its input ends: that is all that
        it sees of a lost link.
        """
        return self._popen(start_script(command, environment or {}))

    def read(self, command: Sequence[str], take: Take, *, limit_s: float) -> None:
        """Run a command there and give its output on piece by piece."""
        completed = self._exchanged(command, {}, (io.BytesIO(), 0), take, limit_s)
        if completed.status:
            raise LinkError(f"{self.text}: {completed.last_words}")

    def put(self, source: Path, destination: str, *, limit_s: float = copying.COPY_LIMIT_S) -> None:
        """Copy a file there, whole or not at all; folders are made. What is there with the same content stays.

        Raises `LinkError` as `run` does, and where it does not arrive whole (a full disk, with the device's own words).
        """
        copying.put(self, source, destination, limit_s + self._patience_s(source))

    def get(self, source: str, destination: Path, *, limit_s: float = copying.COPY_LIMIT_S) -> None:
        """Copy a file from there, whole or not at all; as `put`."""
        copying.get(self, source, destination, limit_s)

    def seconds_for(self, size_bytes: int) -> float:
        """Return how long so many bytes take over a slow link; nothing over others."""
        return self._link.seconds_for(size_bytes)

    def _patience_s(self, source: Path) -> float:
        """Return how much longer than usual a copy may take: twice what its link needs."""
        return 2 * self.seconds_for(source.stat().st_size) if source.is_file() else 0.0

    def link_complaint(self, errors: bytes) -> str:
        """Say in one line why the link ended, from what a started command left in its errors."""
        return self._link.complaint(errors.decode("utf-8", "replace"))

    def close(self) -> None:
        """End a shared connection."""
        self._link.close()

    def _popen(self, script: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            self._link.command_line(script),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C here ends what is waited for, not the link
        )
        _LINKS[process] = self._link
        return process
