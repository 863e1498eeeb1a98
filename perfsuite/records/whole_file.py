"""Files that are written whole or not at all, and the digest by which one is known."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from perfsuite.errors import PerfsuiteError
from perfsuite.records.own_files import is_locked

#: What the names of files end with that are being written.
_PARTIAL = ".perfsuite-part"


def write_whole(path: Path, fill: Callable[[TextIO], object], error_type: type[PerfsuiteError]) -> None:
    """Write what `fill` writes through a temporary file in the same folder, so that a reader never sees half of it.

    Raises PerfsuiteError: of `error_type`, naming the path and why it cannot be written; what was there before stays.
    """
    with whole_path(path, error_type) as partial, partial.open("w", encoding="utf-8") as out:
        fill(out)


def write_whole_binary(path: Path, fill: Callable[[BinaryIO], None], error_type: type[PerfsuiteError]) -> None:
    """Write the bytes that `fill` writes as `write_whole` writes text; raises as it does."""
    with whole_path(path, error_type) as partial, partial.open("wb") as out:
        fill(out)


def write_whole_bytes(path: Path, content: bytes, error_type: type[PerfsuiteError]) -> None:
    """Write bytes as `write_whole` writes text; raises as it does."""
    write_whole_chunks(path, (content,), error_type)


def write_whole_chunks(path: Path, chunks: Iterable[bytes], error_type: type[PerfsuiteError]) -> None:
    """Write pieces of bytes one after the other, as they come, so that no more than one need be in memory."""
    write_whole_binary(path, lambda out: out.writelines(chunks), error_type)


@contextmanager
def whole_path(path: Path, error_type: type[PerfsuiteError]) -> Iterator[Path]:
    """Give the path of a file that takes the place of `path` once it is on the disk, unless filling it fails.

    A link stays, and what it leads to is replaced. A device or a pipe is refused: its place in the file system is no
    file's to take. Raises as `write_whole` does.
    """
    named = path
    try:
        path = Path(os.path.realpath(named))
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise error_type(f"{named}: is not a file but a device or a pipe; name a file, or redirect standard output")
        make_folder(path.parent)
        remove_left(path.parent)
        handle, partial = _opened(path.parent)
        try:
            yield partial
            partial.chmod(0o644)
            _sync(partial)  # by its name, for a writer may have put another file in its place
            os.replace(partial, path)
            sync_folder(path.parent)
        finally:
            partial.unlink(missing_ok=True)
            os.close(handle)
    except OSError as error:
        raise error_type(f"{named}: cannot be written ({error.strerror})") from error


def _opened(folder: Path) -> tuple[int, Path]:
    """Open a new file in a folder, and lock it, by which others know that somebody writes it."""
    while True:
        partial = folder / f".{secrets.token_hex(8)}{_PARTIAL}"
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        if is_locked(handle) and os.fstat(handle).st_nlink:
            return handle, partial
        os.close(handle)  # somebody has taken it for one that a kill left


def remove_left(folder: Path) -> None:
    """Remove the files that killed processes left half written: nobody holds their locks."""
    left: list[str] = []
    with suppress(OSError), os.scandir(folder) as entries:
        left = [each.path for each in entries if each.name.startswith(".") and each.name.endswith(_PARTIAL)]
    for path in left:
        with suppress(OSError):
            handle = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)
            finally:
                os.close(handle)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, whose names then outlive a power cut; raises OSError."""
    missing = [each for each in (folder, *folder.parents) if not os.path.lexists(each)]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        sync_folder(each.parent)


def place_folder(draft: Path, to: Path) -> None:
    """Move a folder to its place once all that is in it is on the disk; raises OSError."""
    for folder, _, names in os.walk(draft):
        for path in (Path(folder, name) for name in names):
            if path.is_file() and not path.is_symlink():
                _sync(path)
        sync_folder(Path(folder))
    draft.rename(to)
    sync_folder(to.parent)


def _sync(path: Path, flags: int = 0) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Make sure that the names in a folder outlive a power cut, where the file system can."""
    with suppress(OSError):
        _sync(folder, os.O_DIRECTORY)


#: A list of numbers as `json` indents it. Within a string a line break is escaped, so none is taken for a list.
_NUMBERS = re.compile(r"\[\n[-+.,\d\seE]+\]")


def json_text(plain: Mapping[str, Any]) -> str:
    """Return indented JSON that ends with a newline, a list of numbers on one line."""
    text = io.StringIO()
    json.dump(plain, text, indent=1, ensure_ascii=False, allow_nan=False)
    return _NUMBERS.sub(lambda found: f"[{' '.join(found[0][1:-1].split())}]", text.getvalue()) + "\n"


def write_json(path: Path, plain: Mapping[str, Any], error_type: type[PerfsuiteError]) -> None:
    """Write the text of `json_text`.

    Raises PerfsuiteError: of `error_type`, naming the path and why it cannot be written; what was there before stays.
    """
    write_whole(path, lambda out: out.write(json_text(plain)), error_type)


_CHUNK_BYTES = 1 << 20


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal; raises the OSError of one that cannot be read."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")


def plain_name(name: str, what: str, error_type: type[PerfsuiteError]) -> str:
    """Return a name that is one part of a path and leads nowhere else; a message begins with `what` is called so.

    Raises PerfsuiteError: of `error_type`: it is another, such as ``../x``.
    """
    if _NAME.fullmatch(name):
        return name
    rule = "letters, digits, '.', '_' and '-', not beginning with '.' or '-'"
    raise error_type(f"{what} is {repr(name)[:60]}, expected a plain name: {rule}")
