"""Keeps one calibration for each device, engine and number of threads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from perfsuite.errors import MeasurementError
from perfsuite.expectation.timing.calibration import Calibration
from perfsuite.records.codec import ABSENT, plain_json
from perfsuite.records.whole_file import write_json


def device_file(folder: Path, fingerprint: Mapping[str, str], *which: str | int, board: str | None) -> Path:
    """Return the file in a folder that belongs to one device.

    Its name is a hash of the fingerprint, of `which` else decides, and of the board's identity. Without a board, which
    is this machine, it is that of the versions that did not tell boards apart.
    """
    identity = json.dumps([dict(sorted(fingerprint.items())), *which, *([] if board is None else [board])])
    return folder / f"{hashlib.sha256(identity.encode()).hexdigest()[:16]}.json"


def store_calibration(
    calibration: Calibration, build_id: str, cache_dir: Path, *, board: str | None = None, quick_for: str | None = None
) -> Path:
    """Write a calibration whole, in place of an older one; return its path.

    `board` is the identity of a board at the end of a link, None the machine whose cache it is. `quick_for` names what
    a quick calibration was made for: each has a file beside that of a whole one, and takes no place of that.
    """
    kept_for = (calibration.fingerprint, build_id, calibration.n_threads, cache_dir)
    path = calibration_path(*kept_for, board=board, quick_for=quick_for)
    write_json(path, calibration.to_plain(), MeasurementError)
    return path


def find_calibration(
    fingerprint: Mapping[str, str],
    build_id: str,
    n_threads: int,
    cache_dir: Path,
    *,
    board: str | None = None,
    quick_for: str | None = None,
) -> Calibration | None:
    """Return the calibration of exactly this device, build and number of threads; None where there is none.

    `board` and `quick_for` are as in `store_calibration`: another board of the kind has none of this one's.

    Raises `MeasurementError` where the file is there and cannot be read; the message names it.
    """
    path = calibration_path(fingerprint, build_id, n_threads, cache_dir, board=board, quick_for=quick_for)
    plain = plain_json(path, MeasurementError, "run 'perfsuite calibrate' again", absent=ABSENT)
    if plain is ABSENT:
        return None
    try:
        return Calibration.from_plain(plain)
    except MeasurementError as error:
        raise MeasurementError(f"{path}: {error}") from error


def calibration_path(
    fingerprint: Mapping[str, str],
    build_id: str,
    n_threads: int,
    cache_dir: Path,
    *,
    board: str | None = None,
    quick_for: str | None = None,
) -> Path:
    """Return where the calibration of a device, a build and a number of threads is kept, or a quick one of them."""
    quick = () if quick_for is None else (quick_for,)
    return device_file(cache_dir / "calibrations", fingerprint, build_id, n_threads, *quick, board=board)
