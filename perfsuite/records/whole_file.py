"""Files that are written whole or not at all."""

from __future__ import annotations

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

#: An open file as a link, on Linux.
_OPEN_FILE = "/proc/self/fd/{}"


def write_whole(path: Path, fill: Callable[[TextIO], None], error_type: type[PerfsuiteError]) -> None:
    """Write what `fill` writes through a temporary file in the same folder, so that a reader never sees half of it.

    Raises PerfsuiteError: of `error_type`, naming the path and why it cannot be written; what was there before stays.
    """
    with _replacement(path, error_type) as handle, open(handle, "w", encoding="utf-8", closefd=False) as out:
        fill(out)


def write_whole_binary(path: Path, fill: Callable[[BinaryIO], None], error_type: type[PerfsuiteError]) -> None:
    """Write the bytes that `fill` writes as `write_whole` writes text; raises as it does."""
    with _replacement(path, error_type) as handle, open(handle, "wb", closefd=False) as out:
        fill(out)


def write_whole_bytes(path: Path, content: bytes, error_type: type[PerfsuiteError]) -> None:
    """Write bytes as `write_whole` writes text; raises as it does."""
    write_whole_chunks(path, (content,), error_type)


def write_whole_chunks(path: Path, chunks: Iterable[bytes], error_type: type[PerfsuiteError]) -> None:
    """Write pieces of bytes one after the other, as they come, so that no more than one need be in memory."""
    write_whole_binary(path, lambda out: out.writelines(chunks), error_type)


@contextmanager
def _replacement(path: Path, error_type: type[PerfsuiteError]) -> Iterator[int]:
    """Give the handle of a new file, which takes the path's place once it is on the disk, unless filling it fails.

    A link stays, and what it leads to is replaced. A device or a pipe is refused: its place in the file system is no
    file's to take.
    """
    handle: int | None = None
    partial: Path | None = None
    named = path
    try:
        path = Path(os.path.realpath(named))
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise error_type(f"{named}: is not a file but a device or a pipe; name a file, or redirect standard output")
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = _opened(path)
        yield handle
        os.fchmod(handle, 0o644)
        os.fsync(handle)
        if partial is None:
            partial = _named(handle, path)
        os.replace(partial, path)
        partial = None
        _sync_folder(path.parent)
    except OSError as error:
        raise error_type(f"{named}: cannot be written ({error.strerror})") from error
    finally:
        if handle is not None:
            os.close(handle)
        if partial is not None:
            partial.unlink(missing_ok=True)


def _opened(path: Path) -> tuple[int, Path | None]:
    """Open a file beside a path, without a name where the file system knows such: a kill leaves nothing of it."""
    with suppress(OSError):
        handle = os.open(path.parent, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        if os.path.exists(_OPEN_FILE.format(handle)):
            return handle, None
        os.close(handle)  # there is no /proc, by which it gets its name
    partial = _beside(path)
    return os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), partial


def _named(handle: int, path: Path) -> Path:
    """Give a file without a name one beside a path."""
    partial = _beside(path)
    # only with a folder's handle does Python have the link in /proc followed
    os.link(_OPEN_FILE.format(handle), partial, src_dir_fd=handle, follow_symlinks=True)
    return partial


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}")


def _sync_folder(folder: Path) -> None:
    """Make sure that a new name in a folder outlives a power cut, where the file system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


#: A list of numbers as `json` indents it. Within a string a line break is escaped, so none is taken for a list.
_NUMBERS = re.compile(r"\[\n[-+.,\d\seE]+\]")


def write_json(path: Path, plain: Mapping[str, Any], error_type: type[PerfsuiteError]) -> None:
    """Write indented JSON that ends with a newline, a list of numbers on one line.

    Raises PerfsuiteError: of `error_type`, naming the path and why it cannot be written; what was there before stays.
    """

    def fill(out: TextIO) -> None:
        text = io.StringIO()
        json.dump(plain, text, indent=1, ensure_ascii=False, allow_nan=False)
        out.write(_NUMBERS.sub(lambda found: f"[{' '.join(found[0][1:-1].split())}]", text.getvalue()) + "\n")

    write_whole(path, fill, error_type)
