"""Files that are written whole or not at all."""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from perfsuite.errors import PerfsuiteError


def write_whole(path: Path, fill: Callable[[TextIO], None], error_type: type[PerfsuiteError]) -> None:
    """Write what `fill` writes through a temporary file in the same folder, so that a reader never sees half of it.

    Raises PerfsuiteError: of `error_type`, naming the path and why it cannot be written; what was there before stays.
    """
    with _replacement(path, error_type) as handle, os.fdopen(handle, "w", encoding="utf-8") as out:
        fill(out)


def write_whole_binary(path: Path, fill: Callable[[BinaryIO], None], error_type: type[PerfsuiteError]) -> None:
    """Write the bytes that `fill` writes as `write_whole` writes text; raises as it does."""
    with _replacement(path, error_type) as handle, os.fdopen(handle, "wb") as out:
        fill(out)


def write_whole_bytes(path: Path, content: bytes, error_type: type[PerfsuiteError]) -> None:
    """Write bytes as `write_whole` writes text; raises as it does."""
    write_whole_chunks(path, (content,), error_type)


def write_whole_chunks(path: Path, chunks: Iterable[bytes], error_type: type[PerfsuiteError]) -> None:
    """Write pieces of bytes one after the other, as they come, so that no more than one need be in memory."""
    write_whole_binary(path, lambda out: out.writelines(chunks), error_type)


@contextmanager
def _replacement(path: Path, error_type: type[PerfsuiteError]) -> Iterator[int]:
    """Give the handle of a temporary file, which takes the path's place unless filling it fails.

    A link stays, and what it leads to is replaced. A device or a pipe is refused: its place in the file system is no
    file's to take.
    """
    partial: str | None = None
    named = path
    try:
        path = Path(os.path.realpath(named))
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise error_type(f"{named}: is not a file but a device or a pipe; name a file, or redirect standard output")
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        yield handle
        os.chmod(partial, 0o644)
        os.replace(partial, path)
    except OSError as error:
        raise error_type(f"{named}: cannot be written ({error.strerror})") from error
    finally:
        if partial is not None:
            Path(partial).unlink(missing_ok=True)


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
