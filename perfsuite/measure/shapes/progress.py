"""How far the process that measures shapes is, in a page of memory that outlives it."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

#: Steps so far, and the place of the case in the request that is being answered.
_FORMAT = struct.Struct("=qq")


class ProgressMark:
    """A mark that one process sets and another one reads, whatever becomes of the first; neither waits."""

    def __init__(self, path: Path) -> None:
        """Map the file, which holds nothing yet or another's mark."""
        with path.open("a+b") as file:
            file.truncate(mmap.PAGESIZE)
            self._page = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    def step(self, place: int) -> None:
        """Say that another step begins, at a case of the request."""
        n_steps, _ = self.read()
        _FORMAT.pack_into(self._page, 0, n_steps + 1, place)

    def read(self) -> tuple[int, int]:
        """Return the number of steps that were begun, and the place of the last one's case."""
        n_steps, place = _FORMAT.unpack_from(self._page, 0)
        return n_steps, place

    def close(self) -> None:
        """Unmap the file."""
        self._page.close()
