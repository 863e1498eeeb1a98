"""What the log of a cell says: which board it got, whether it waits for one, and why it broke."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

#: The log of a cell, in its folder.
LOG_NAME = "pytest.log"

#: How much of a log is read at either end, and how much of a line is told.
_MOST_READ, _MOST_TOLD = 65536, 300

#: What a run says of the board that it has; see `perfsuite.device.farm.borrowing`.
_BORROWED = re.compile(r"^(?:perfsuite: )?borrowed (\S+) \(")

#: What it says while somebody else has the device; see `perfsuite.device.lock`.
_WAITED = "; waiting for it, "

#: What begins a line that says why a run broke.
_REASONS = re.compile(r"(?:ERROR: |perfsuite: error: |INTERNALERROR> |E {3})\s*(?P<reason>\S.*)")

#: Lines that say nothing of why: those of a farm, frames of pytest's, progress.
_NO_REASON = re.compile(r"(?:perfsuite: )?(?:borrowed|borrowing|gave|waiting) .*|[=\-_!. ]*|.*\[ *\d+%\]")


def log_lines(folder: Path) -> list[str]:
    """Return the first and the last lines of a cell's log, without empty ones."""
    try:
        with (folder / LOG_NAME).open("rb") as log:
            read = log.read(_MOST_READ)
            log.seek(max(len(read), log.seek(0, os.SEEK_END) - _MOST_READ))
            read += log.read()
    except OSError:
        return []
    return [line.strip() for line in read.decode("utf-8", "replace").splitlines() if line.strip()]


def borrowed_place(lines: Sequence[str]) -> str | None:
    """Return labgrid's name of the board that a run borrowed; None where it has none, or none yet."""
    return next((match[1] for line in lines if (match := _BORROWED.search(line))), None)


def has_waited(lines: Sequence[str]) -> bool:
    """Whether the run waited for a device that somebody else had."""
    return any(_WAITED in line for line in lines)


def broken_reason(lines: Sequence[str]) -> str:
    """Return the line that says why a run broke: the last one that says so, or else the last one that says anything."""
    reasons = [match["reason"] for line in lines if (match := _REASONS.match(line))]
    told = reasons or [line for line in lines if not _NO_REASON.fullmatch(line)]
    return told[-1][:_MOST_TOLD] if told else ""
