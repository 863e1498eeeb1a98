"""Rooflines in files: written whole, read with one clear error."""

from __future__ import annotations

import json
from pathlib import Path

from perfsuite.errors import MeasurementError
from perfsuite.expectation.roofline.roofline_run import RooflineRun
from perfsuite.records.whole_file import write_json

#: Digits of a whole number in a file; FLOPs of a long run have fewer.
_MOST_DIGITS = 30


def write_roofline(run: RooflineRun, path: Path) -> None:
    """Write a run whole; MeasurementError where the file cannot be written."""
    write_json(path, run.to_plain(), MeasurementError)


def read_roofline(path: Path) -> RooflineRun:
    """Read a run; MeasurementError names the file and what is wrong with it."""
    try:
        plain = json.loads(path.read_text("utf-8"), parse_int=_whole)
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"no JSON: {error}"
        raise MeasurementError(f"{path}: cannot be read ({reason}); expected a file of 'perfsuite roofline'") from None
    try:
        return RooflineRun.from_plain(plain)
    except MeasurementError as error:
        raise MeasurementError(f"{path}: {error}") from None


def _whole(text: str) -> int:
    """Return a whole number; one that is beyond every time and size would not go into a float."""
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(text)} digits, expected no more than {_MOST_DIGITS}")
    return int(text)
