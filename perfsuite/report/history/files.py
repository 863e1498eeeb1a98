"""Which files are of a history: each says so in its footer, and of which schema and columns it is."""

from __future__ import annotations

import re
import stat
import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfsuite.report.history.columns import SCHEMA

_MAGIC = b"PAR1"
_MARK = re.compile(rb"perfsuite\.history\.schema=(\d{1,9}),columns=[0-9a-f]{8}")
#: The footer's length and the magic number behind it.
_TAIL_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedFile:
    """A file in the folder that is not read, and why."""

    path: Path
    reason: str

    @property
    def text(self) -> str:
        """One line for people."""
        return f"{self.path}: {self.reason}; left out"


class ForeignFileError(Exception):
    """A file is not read; the argument is why."""


def by_columns(paths: Iterable[Path]) -> tuple[Mapping[str, Sequence[Path]], tuple[SkippedFile, ...]]:
    """Return the files of a history by what they say of their columns, and those that are none of it."""
    found: dict[str, list[Path]] = defaultdict(list)
    skipped: list[SkippedFile] = []
    for path in paths:
        try:
            found[_mark_of(path)].append(path)
        except ForeignFileError as error:
            skipped.append(SkippedFile(path=path, reason=str(error)))
    return found, tuple(skipped)


def _mark_of(path: Path) -> str:
    """Return what a file's footer says of its schema and columns; nothing where it has gone, which reading it shows."""
    try:
        str(path).encode()
        if not stat.S_ISREG(path.stat().st_mode):
            raise ForeignFileError("is not a file but a folder, a pipe or a device")
        mark = _MARK.search(_footer(path))
    except UnicodeEncodeError:
        raise ForeignFileError("has a name that is not UTF-8, which DuckDB does not read") from None
    except FileNotFoundError:
        if path.is_symlink():
            raise ForeignFileError("is a link that leads nowhere") from None
        return ""
    except OSError as error:
        raise ForeignFileError(f"cannot be read ({error.strerror})") from error
    if mark is None:
        raise ForeignFileError("is not a whole Parquet file of a history")
    if int(mark[1]) != SCHEMA:
        raise ForeignFileError(f"is of schema {int(mark[1])}, this version of perfsuite reads {SCHEMA}")
    return mark[0].decode()


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
