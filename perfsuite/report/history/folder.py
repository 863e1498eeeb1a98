"""Where a history's files lie: each run's own in ``runs/``, merged ones in ``compacted/``."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from perfsuite.errors import HistoryError
from perfsuite.report.history.columns import MARK, SCHEMA

LOOSE, COMPACTED = "runs", "compacted"

#: So often a folder is listed in which merges end meanwhile.
_MOST_LISTINGS = 8

_MAGIC = b"PAR1"
_MARK = re.compile(rb"perfsuite\.history\.schema=(\d{1,9}),columns=([0-9a-f]{8})")
#: The footer's length and the magic number behind it.
_TAIL_BYTES = 8
#: A run id of these characters is a file's name as it is.
_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedFile:
    """A file in the folder that is not read, and why."""

    path: Path
    reason: str

    @property
    def text(self) -> str:
        """One line for people."""
        return f"{self.path}: {self.reason}; left out"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFiles:
    """The files of a folder: those of a history, and those that are left out."""

    paths: tuple[Path, ...]
    skipped: tuple[SkippedFile, ...] = ()
    #: Whether all have the same columns.
    is_uniform: bool = True
    #: Of the files, those that say themselves that their columns are not those of this version.
    foreign: tuple[Path, ...] = ()


def loose_path(history_dir: Path, started_at: datetime, run_id: str) -> Path:
    """Return where a run's own file lies; the same run has the same."""
    safe_id = run_id if _PLAIN_ID.fullmatch(run_id) else hashlib.sha256(run_id.encode("utf-8", "replace")).hexdigest()
    return history_dir / LOOSE / f"{started_at:%Y%m%dT%H%M%S.%f}Z-{safe_id}.parquet"


def own_files(history_dir: Path, *, with_merged: bool = True) -> HistoryFiles:
    """List what may be merged: the files of this folder itself, not those of folders below."""

    def find() -> list[Path]:
        merged = _parquet_files(history_dir / COMPACTED) if with_merged else []
        return [*loose_files(history_dir), *merged]

    return _sorted_out(history_dir, find)


def loose_files(history_dir: Path) -> list[Path]:
    """List the files of single runs."""
    return _parquet_files(history_dir / LOOSE)


def all_files(history_dir: Path) -> HistoryFiles:
    """List every file of a history in the folder and below; hidden ones are unfinished, and no part of it.

    Raises HistoryError where the folder is a file, cannot be listed, or is merged again and again meanwhile.
    """
    return _sorted_out(history_dir, lambda: _found_below(history_dir))


def _found_below(history_dir: Path) -> list[Path]:
    found: list[Path] = []
    for folder, below, names in os.walk(history_dir, onerror=_refuse):
        below[:] = [name for name in below if not name.startswith(".")]
        found += (Path(folder, name) for name in names if _is_shown(name))
    return sorted(found)


def _parquet_files(folder: Path) -> list[Path]:
    try:
        return sorted(folder / name for name in os.listdir(folder) if _is_shown(name))
    except OSError as error:
        _refuse(error)
        return []


def _is_shown(name: str) -> bool:
    return name.endswith(".parquet") and not name.startswith(".")


def _refuse(error: OSError) -> None:
    """Pass over a folder that is not there, or is no more; of others that cannot be listed, part would be missing."""
    if isinstance(error, FileNotFoundError):
        return
    if isinstance(error, NotADirectoryError):
        raise HistoryError(f"--history={error.filename}: is a file, expected the folder of a history") from error
    raise HistoryError(f"{error.filename}: cannot be listed ({error.strerror})") from error


def _sorted_out(history_dir: Path, find: Callable[[], list[Path]]) -> HistoryFiles:
    """List files and read their footers, and again where a merge ended meanwhile.

    A merge writes its file before it removes others. So a listing that misses a run is known by a file that has gone
    since, or by a merged file that a second listing has and the first has not.
    """
    for _ in range(_MOST_LISTINGS):
        marks = {path: _mark_of(path) for path in find()}
        is_whole = (None, None) not in marks.values()
        if is_whole and all(path in marks for path in find() if path.parent.name == COMPACTED):
            return _chosen(marks)
    raise HistoryError(f"--history={history_dir}: files are merged again and again while it is read; try later")


def _chosen(marks: Mapping[Path, tuple[bytes | None, str | None]]) -> HistoryFiles:
    read = {path: mark for path, (mark, reason) in marks.items() if reason is None}
    skipped = (SkippedFile(path=path, reason=reason) for path, (_, reason) in marks.items() if reason is not None)
    foreign = tuple(path for path, mark in read.items() if mark != MARK.encode())
    return HistoryFiles(
        paths=tuple(read), skipped=tuple(skipped), is_uniform=len(set(read.values())) < 2, foreign=foreign
    )


def _mark_of(path: Path) -> tuple[bytes | None, str | None]:
    """Return what a file's footer says of its schema and columns, and why it is not read; neither where it has gone."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return None, "is not a file but a folder, a pipe or a device"
        if not _is_text(path):
            return None, "has a name that is not UTF-8, which DuckDB does not read"
        mark = _MARK.search(_footer(path))
    except FileNotFoundError:
        return None, "is a link that leads nowhere" if path.is_symlink() else None
    except OSError as error:
        return None, f"cannot be read ({error.strerror})"
    if mark is None:
        return None, "is not a whole Parquet file of a history"
    if int(mark[1]) != SCHEMA:
        return mark[0], f"is of schema {int(mark[1])}, this version of perfsuite reads {SCHEMA}"
    return mark[0], None


def _is_text(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _footer(path: Path) -> bytes:
    """Return the footer of a Parquet file, which holds the keys of its metadata as they are; empty where it has none.

    The file ends with its footer, four bytes of the footer's length, and a magic number.

    Source: Apache Parquet, 'File Format'.
    """
    with path.open("rb") as file:
        n_bytes = file.seek(0, 2)
        if n_bytes < _TAIL_BYTES + len(_MAGIC):
            return b""
        file.seek(n_bytes - _TAIL_BYTES)
        footer_bytes, magic = struct.unpack("<I4s", file.read(_TAIL_BYTES))
        if magic != _MAGIC or footer_bytes > n_bytes - _TAIL_BYTES:
            return b""
        file.seek(n_bytes - _TAIL_BYTES - footer_bytes)
        return file.read(footer_bytes)
