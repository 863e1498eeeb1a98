"""Gives a process pages of its own for the engine's code and constants, drawn by the kernel anew.

All processes share a library's pages in the page cache, which stay where they came to lie when the file was first
read. Two copies of one build then differ for as long as they stay cached: decode's attention by 3 %, an operator of
2 us by 11 %, in 138 of 138 pairs alike (docs/results.md, 'The main road'). With pages of its own a process draws where
its code lies, as it draws where its buffers do, and what was a bias between two files is noise between processes.
"""

from __future__ import annotations

import ctypes
import mmap
import re
from pathlib import Path

from perfsuite.errors import EngineError

_MAPS = Path("/proc/self/maps")

#: A private mapping that is not written to: where it begins and ends, whether it is executed, its file.
_READ_ONLY = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r-([x-])p \S+ \S+ \S+ +(/.+)")


def own_code_pages(library: ctypes.CDLL, library_dir: Path) -> int:
    """Copy what is mapped read-only of the libraries in a folder, and return the bytes that were copied.

    Any `library` that knows the C library serves to call it.

    Each page gets its first byte written over itself, which makes the kernel copy it. 0 where the system lets no page
    of code be written (SELinux without execmod) or is not Linux: then the pages stay those of the file. The mappings
    are the file's as before, so that uprobes find them.
    """
    folder = library_dir.resolve()
    try:
        lines = _MAPS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return 0
    found = (match for line in lines if (match := _READ_ONLY.fullmatch(line)))
    return sum(
        _copied(library, int(match[1], 16), int(match[2], 16), mmap.PROT_EXEC if match[3] == "x" else 0)
        for match in found
        if Path(match[4]).parent == folder
    )


def _copied(library: ctypes.CDLL, begin: int, end: int, executed: int) -> int:
    start, size = ctypes.c_void_p(begin), ctypes.c_size_t(end - begin)
    if library.mprotect(start, size, mmap.PROT_READ | mmap.PROT_WRITE | executed) != 0:
        return 0
    for page in range(begin, end, mmap.PAGESIZE):
        ctypes.memmove(page, page, 1)
    if library.mprotect(start, size, mmap.PROT_READ | executed) != 0:
        raise EngineError(f"the engine's code at {begin:x} cannot be protected again once it was copied; run again")
    return end - begin
