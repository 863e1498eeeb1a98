"""How a cell's pytest ended by itself, in the cell's folder: a night that is ended just then does not lose it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from perfsuite.errors import PerfsuiteError
from perfsuite.records.field_checks import amount, count, object_of
from perfsuite.records.json_file import write_json

#: What the file is called.
EXIT_NAME = "exit.json"

_FIELDS = object_of({"exit_code": count, "seconds": amount})


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitNote:
    """How a pytest that nobody stopped has ended."""

    #: 128 + N where signal N ended it.
    exit_code: int
    seconds: float


def write_exit(folder: Path, note: ExitNote) -> None:
    """Write the file, whole; raises PerfsuiteError where there is no room for it."""
    write_json(folder / EXIT_NAME, asdict(note), PerfsuiteError)


def read_exit(folder: Path) -> ExitNote | None:
    """Return what the file says; None where the cell has not ended by itself, or it cannot be read."""
    try:
        plain = json.loads((folder / EXIT_NAME).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if _FIELDS(plain) or not {"exit_code", "seconds"} <= plain.keys():
        return None
    return ExitNote(exit_code=plain["exit_code"], seconds=float(plain["seconds"]))
