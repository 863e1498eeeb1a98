"""How a cell's pytest ended by itself, in the cell's folder: a night that is ended just then does not lose it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfsuite.errors import PerfsuiteError
from perfsuite.records.codec import Amount, Count, read_json, to_plain
from perfsuite.records.whole_file import write_json

#: What the file is called.
EXIT_NAME = "exit.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitNote:
    """How a pytest that nobody stopped has ended."""

    #: 128 + N where signal N ended it.
    exit_code: Count
    seconds: Amount


def write_exit(folder: Path, note: ExitNote) -> None:
    """Write the file, whole; raises PerfsuiteError where there is no room for it."""
    write_json(folder / EXIT_NAME, to_plain(note), PerfsuiteError)


def read_exit(folder: Path) -> ExitNote | None:
    """Return what the file says; None where the cell has not ended by itself, or it cannot be read."""
    try:
        return read_json(folder / EXIT_NAME, ExitNote, PerfsuiteError, "")
    except PerfsuiteError:
        return None
