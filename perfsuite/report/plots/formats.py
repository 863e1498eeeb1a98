"""The formats in which a picture is written."""

from __future__ import annotations

from pathlib import Path

from perfsuite.errors import PerfsuiteError, require

#: By their suffix; the first is the one where none is named.
FORMATS = ("png", "svg")


def format_of(path: Path) -> str:
    """Return the format that a path's suffix names; PerfsuiteError names what is accepted, or what is not installed."""
    file_format = path.suffix.lower().removeprefix(".")
    if file_format not in FORMATS:
        accepted = " and ".join(f".{each}" for each in FORMATS)
        raise PerfsuiteError(f"{path}: suffix is {path.suffix!r}, accepted are {accepted}")
    require("matplotlib", str(path))
    return file_format
