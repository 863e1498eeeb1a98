"""Merges the files of a history into fewer, so that whoever reads at any moment finds every run.

The merged file is whole and on the disk before any file that it replaces goes. In between, and after a merge that was
broken off, rows are there twice, and readers take each case of a run once. A reader that lists the folder while files
go sees that by the files that have gone or by the merged file that came, and lists it again (`folder.py`). Nothing is
lost whoever merges at the same time: a file is removed by a process only whose own merged file holds its rows. The lock
merely spares needless work.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.errors import HistoryError
from perfsuite.records.history_place import HistoryBucket, HistoryPlace
from perfsuite.report.history.bucket import OpenBucket
from perfsuite.report.history.database import (
    create_history,
    database,
    database_errors,
    history_work,
    interruptible,
    with_own_types,
    write_rows,
)
from perfsuite.report.history.folder import COMPACTED, LOOSE, HistoryFiles, SkippedFile, own_files
from perfsuite.report.history.folder_lock import held_folder
from perfsuite.report.history.mirror import readable_folder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: How long one process waits for another to be done with merging.
_LOCK_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What a merge did."""

    #: The merged file, or the address of the merged object; None where there was nothing to merge.
    path: Path | str | None
    n_files: int
    n_runs: int
    skipped: tuple[SkippedFile, ...] = ()


def compact(place: HistoryPlace, *, limit_s: float = _LOCK_LIMIT_S) -> Compaction:
    """Merge all files of a folder, but not those of folders below it, into one that is sorted by case and time.

    Raises HistoryError where another process is merging for longer than `limit_s`, a file is damaged, or one cannot be
    written or removed.
    """
    return _compact_folder(place, limit_s) if isinstance(place, Path) else _compact_bucket(place)


def _compact_bucket(bucket: HistoryBucket) -> Compaction:
    """Merge the objects of a bucket's prefix; there is no lock, and none is needed.

    Of two that merge at the same time each removes what its own merged object holds: rows are there twice, until the
    next merge, and none is lost. A run that comes meanwhile was not listed, and stays.
    """
    folder = readable_folder(bucket)
    files = _checked(own_files(folder))
    if not _is_worth_it(files):
        return Compaction(path=None, n_files=len(files.paths), n_runs=0, skipped=files.skipped)
    name, opened = f"{COMPACTED}/{uuid.uuid4().hex}.parquet", OpenBucket(bucket)
    with history_work() as work:
        made = work / "merged.parquet"
        n_runs = _made(f"{bucket}: cannot be merged, nothing was changed", files, made)
        opened.put(name, made)
    opened.remove([path.relative_to(folder).as_posix() for path in files.paths])
    return Compaction(path=f"{bucket}/{name}", n_files=len(files.paths), n_runs=n_runs, skipped=files.skipped)


def _is_worth_it(files: HistoryFiles) -> bool:
    return len(files.paths) > 1 or any(path.parent.name == LOOSE for path in files.paths)


def _compact_folder(history_dir: Path, limit_s: float) -> Compaction:
    with held_folder(history_dir, limit_s) as is_ours:
        if not is_ours:
            raise HistoryError(f"{history_dir}: is being compacted by another process for {limit_s:.0f} s; try later")
        files = _checked(own_files(history_dir))
        if not _is_worth_it(files):
            return Compaction(path=None, n_files=len(files.paths), n_runs=0, skipped=files.skipped)
        path, n_runs = _merge(history_dir, files)
        return Compaction(path=path, n_files=len(files.paths), n_runs=n_runs, skipped=files.skipped)


def merge_loose(history_dir: Path) -> None:
    """Merge the files of single runs into one more merged file, unless somebody merges already or one is damaged."""
    try:
        with held_folder(history_dir, 0.0) as is_ours:
            files = _checked(own_files(history_dir, with_merged=False)) if is_ours else HistoryFiles(paths=())
            if len(files.paths) > 1:
                _merge(history_dir, files)
    except HistoryError:
        return  # everything is as it was, and the next run tries again


def _checked(files: HistoryFiles) -> HistoryFiles:
    """Return the files that may be merged: whatever they say of themselves, their columns have the right types."""
    with database_errors("the columns of files cannot be read"), database() as connection:
        return interruptible(connection, lambda: with_own_types(connection, files, files.paths))


def _merge(history_dir: Path, files: HistoryFiles) -> tuple[Path, int]:
    path = history_dir / COMPACTED / f"{uuid.uuid4().hex}.parquet"
    n_runs = _made(f"{history_dir}: cannot be merged, nothing was changed", files, path)
    _flush(path)
    _remove(files.paths)
    return path, n_runs


def _made(told: str, files: HistoryFiles, path: Path) -> int:
    """Write the merged file; return how many runs it holds."""
    with database_errors(told), database() as connection:
        return interruptible(connection, lambda: _write_merged(connection, files, path))


def _write_merged(connection: DuckDBPyConnection, files: HistoryFiles, path: Path) -> int:
    create_history(connection, files)
    (n_runs,) = connection.execute("SELECT count(DISTINCT run_id) FROM history").fetchone() or (0,)
    write_rows(connection, "history", path)
    return int(n_runs)


def _remove(paths: Sequence[Path]) -> None:
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise HistoryError(f"{path}: cannot be removed ({error.strerror}) now that it is merged") from error


def _flush(path: Path) -> None:
    """Wait until a file and its name are on the disk."""
    for each in (path, path.parent):
        handle = os.open(each, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
