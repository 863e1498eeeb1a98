"""Reads and writes the kernel's small files, none of which can be trusted to be there, or to hold what it should."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Generic, TypeAlias, TypeVar

from msgspec import Meta

_Told = TypeVar("_Told")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(Generic[_Told]):
    """Something that is read whole: a zone, or the files of one cooling device."""

    #: What it reads; a program that is started is none of them.
    files: tuple[Path, ...]
    read: Callable[[], _Told]

    @property
    def n_reads(self) -> int:
        """Files that it reads; a program that is started counts as one."""
        return max(1, len(self.files))


@dataclass(slots=True, kw_only=True)
class Rotation(Generic[_Told]):
    """Sources that are read in turn; each has what it told last."""

    sources: Sequence[Source[_Told]]
    _told: dict[int, _Told] = field(default_factory=dict)
    _next: int = 0

    @property
    def told(self) -> tuple[_Told, ...]:
        """What each source told last, in their order; a source that was never read is left out."""
        return tuple(self._told[place] for place in sorted(self._told))

    def read_all(self) -> None:
        """Read every source."""
        for place, source in enumerate(self.sources):
            self._told[place] = source.read()

    def read_some(self, most_reads: int) -> None:
        """Read the next sources, one at least, of at most `most_reads` files together."""
        n_reads = 0
        for _ in self.sources:
            source = self.sources[self._next]
            if n_reads and n_reads + source.n_reads > most_reads:
                break
            self._told[self._next] = source.read()
            self._next = (self._next + 1) % len(self.sources)
            n_reads += source.n_reads


#: More than any file holds that is read here.
_MOST_BYTES = 65536
#: A number as the kernel writes one; Python's own `int` takes more than that.
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
#: A name of a governor; anything else was not written by the kernel, and is not written to it.
_NAME = r"\A[A-Za-z0-9_.+-]{1,64}\Z"
Governor: TypeAlias = Annotated[str, Meta(pattern=_NAME)]


def read_line(path: Path) -> str | None:
    """Return the text without the space around it; None where it cannot be read, and where there is none.

    It never waits: neither a pipe nor a device in the file's place holds it up.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        content = _whole(handle)
    except OSError:
        return None
    finally:
        os.close(handle)
    return content.decode("utf-8", "replace").strip("\0 \t\r\n") or None


def _whole(handle: int) -> bytes:
    """Read to the end; the files of /proc come a page at a time."""
    content = b""
    while len(content) < _MOST_BYTES and (part := os.read(handle, _MOST_BYTES - len(content))):
        content += part
    return content


def read_number(path: Path) -> int | None:
    """Return the whole number that a file holds, None for anything else."""
    text = read_line(path)
    return int(text) if text is not None and _NUMBER.fullmatch(text) else None


def processor_list(text: str) -> tuple[int, ...]:
    """Read ``0-3,7`` or ``0 1 2 3``, as the kernel writes lists of processors."""
    ranges = re.findall(r"(\d+)(?:-(\d+))?", text, re.ASCII)
    return tuple(each for first, last in ranges for each in range(int(first), min(int(last or first), 4096) + 1))


def read_name(path: Path) -> str | None:
    """Return the name that a file holds, None for anything else."""
    text = read_line(path)
    return text if text is not None and re.match(_NAME, text) else None


def is_there(path: Path) -> bool:
    """Whether there is such a file; not where one may not look, as on Android."""
    return os.path.exists(path)


def entries(folder: Path, pattern: str) -> tuple[Path, ...]:
    """Return what is in a folder, in the order of the numbers in the names; nothing where it cannot be listed."""
    try:
        found = list(folder.glob(pattern))
    except (OSError, ValueError):
        return ()
    return tuple(sorted(found, key=lambda path: by_number(path.name)))


def by_number(name: str) -> tuple[tuple[int, str], ...]:
    """Return what orders ``zone2`` before ``zone10``."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name))
