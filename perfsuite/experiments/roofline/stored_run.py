"""Rooflines in files: written whole, read with one clear error."""

from __future__ import annotations

from pathlib import Path

from perfsuite.errors import MeasurementError
from perfsuite.expectation.roofline.roofline_run import RooflineRun
from perfsuite.records.codec import plain_json
from perfsuite.records.whole_file import write_json


def write_roofline(run: RooflineRun, path: Path) -> None:
    """Write a run whole; MeasurementError where the file cannot be written."""
    write_json(path, run.to_plain(), MeasurementError)


def read_roofline(path: Path) -> RooflineRun:
    """Read a run; MeasurementError names the file and what is wrong with it."""
    plain = plain_json(path, MeasurementError, "expected a file of 'perfsuite roofline'")
    try:
        return RooflineRun.from_plain(plain)
    except MeasurementError as error:
        raise MeasurementError(f"{path}: {error}") from None
