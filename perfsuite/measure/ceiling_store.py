"""Keeps what a machine is known by: the best ceilings that it has ever shown, and its calibrations.

A shared machine may show half of its bandwidth for minutes. A ceiling measured in such a stretch is too low to be a
ceiling, so the best of all runs is kept, by everything that decides what a machine can do. Among several boards of a
kind that are reached over a link each has its own, or the fastest one would loosen the floor of the others.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from perfsuite.errors import MeasurementError
from perfsuite.expectation.timing.calibration import Calibration
from perfsuite.measure.board.protocol import Board, board_name
from perfsuite.measure.plan import ProbePlan
from perfsuite.records.ceilings import Ceilings, merge_ceilings
from perfsuite.records.codec import ABSENT, plain_json
from perfsuite.records.whole_file import write_json


def best_ceilings(
    measured: Ceilings, fingerprint: Mapping[str, str], cache_dir: Path, board: str | None = None
) -> Ceilings:
    """Merge `measured` with what the store holds for this machine and thread count, keep the best, and return it.

    A store that cannot be read or written is left alone: the run goes on with what it measured itself. `board` is the
    identity of one that was reached over a link; None is this machine.
    """
    path, best = _path(fingerprint, measured.n_threads, cache_dir, board), measured
    with suppress(MeasurementError):
        best = merge_ceilings((_read(path), measured))
    with suppress(MeasurementError):
        write_json(path, best.to_plain(), MeasurementError)
    return best


def stored_ceilings(
    fingerprint: Mapping[str, str], n_threads: int, cache_dir: Path, board: str | None = None
) -> Ceilings | None:
    """Return the best that this machine, or that board, has shown with so many threads; None where nothing is there."""
    try:
        return _read(_path(fingerprint, n_threads, cache_dir, board))
    except MeasurementError:
        return None


def _path(fingerprint: Mapping[str, str], n_threads: int, cache_dir: Path, board: str | None) -> Path:
    return device_file(cache_dir / "ceilings", fingerprint, n_threads, board=board)


def _read(path: Path) -> Ceilings:
    return Ceilings.from_plain(plain_json(path, MeasurementError, "measure again"))


#: How long the probes take together, ms.
_BUDGET_MS = 2500


def measured_ceilings(board: Board, n_threads: int) -> Ceilings:
    """Measure the ceilings of a board with so many threads, in a fresh process there."""
    plan = ProbePlan(cache_dir=str(board.facts().cache_dir), n_threads=n_threads, budget_ms=_BUDGET_MS)
    return Ceilings.from_plain(board.run(plan)["ceilings"])


def best_of_board(board: Board, measured: Ceilings, cache_dir: Path) -> Ceilings:
    """Return the best that this very board has shown in any run, with what was measured now, and keep it."""
    return best_ceilings(measured, board.facts().fingerprint, cache_dir, board=board_name(board).kept_by)


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


def board_calibration(board: Board, n_threads: int, cache_dir: Path) -> Calibration | None:
    """Return the calibration of a board as it is now, with its governor and its engine, as `find_calibration`."""
    facts, kept_by = board.facts(), board_name(board).kept_by
    return find_calibration(facts.fingerprint, facts.engine.build_id, n_threads, cache_dir, board=kept_by)


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
