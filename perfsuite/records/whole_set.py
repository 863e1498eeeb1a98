"""Files of a folder that change together: a reader finds all as before or all as after, whatever ends the writing.

First the new texts go into one file, whole. From then on they count: `pending_text` reads them there. Then each goes
into its own file, and the first one is removed. The next change of the folder completes what was cut off.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfsuite.errors import PerfsuiteError
from perfsuite.records.codec import read_json, to_plain
from perfsuite.records.whole_file import remove_whole, write_json, write_whole_bytes

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
_RULE = "letters, digits, '.', '_' and '-', not beginning with '.' or '-'"
_MAX_CHARACTERS = 60


def plain_name(name: str, what: str, error_type: type[PerfsuiteError]) -> str:
    """Return a name that is one part of a path and leads nowhere else; a message begins with `what` is called so.

    Raises PerfsuiteError: of `error_type`: it is another, such as ``../x``.
    """
    if _NAME.fullmatch(name):
        return name
    raise error_type(f"{what} is {repr(name)[:_MAX_CHARACTERS]}, expected a plain name: {_RULE}")


#: The file of what is not complete.
JOURNAL_NAME = ".unfinished"
_SCHEMA = 1
_TODO = "restore the folder from version control, and remove this file"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    text: str
    #: SHA-256 of what the file held; None where there was none.
    before: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unfinished:
    #: By the file's name.
    files: Mapping[str, _Change]


def write_together(folder: Path, texts: Mapping[str, str], error_type: type[PerfsuiteError]) -> None:
    """Write files of a folder by their names, all or none; the caller keeps others from changing them meanwhile.

    Raises PerfsuiteError: of `error_type`, naming the path and why it cannot be written.
    """
    if len(texts) > 1:
        files = {name: _Change(text=text, before=_digest(folder / name)) for name, text in texts.items()}
        plain = to_plain(_Unfinished(files=files))
        write_json(folder / JOURNAL_NAME, {"schema": _SCHEMA, **plain}, error_type)
        complete(folder, error_type)
    else:
        for name, text in texts.items():
            write_whole_bytes(folder / name, text.encode(), error_type)


def complete(folder: Path, error_type: type[PerfsuiteError]) -> None:
    """Finish what was cut off; raises as `write_together`, whose caller this is or may be."""
    unfinished = _read(folder, error_type)
    if unfinished is None:
        return
    for name, change in unfinished.files.items():
        if _digest(folder / name) == change.before:
            write_whole_bytes(folder / name, change.text.encode(), error_type)
    remove_whole(folder / JOURNAL_NAME, error_type)


def pending_text(path: Path, error_type: type[PerfsuiteError]) -> str | None:
    """Return what a file holds once what was cut off is finished; None where the file itself says it."""
    unfinished = _read(path.parent, error_type)
    change = unfinished.files.get(path.name) if unfinished is not None else None
    return change.text if change is not None and _digest(path) == change.before else None


def _read(folder: Path, error_type: type[PerfsuiteError]) -> _Unfinished | None:
    path = folder / JOURNAL_NAME
    if not path.is_file():
        return None
    unfinished = read_json(path, _Unfinished, error_type, _TODO, schema=_SCHEMA)
    for name in unfinished.files:
        plain_name(name, f"{path}: a file", error_type)
    return unfinished


def _digest(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None
