"""What an ELF file needs of the system that loads it: its machine, its libraries, its versions of glibc.

*Source*: elf(5); the Linux Standard Base, *Symbol Versioning*.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from perfsuite.errors import NativeBuildError

#: What a C library has itself, by what the names begin with; the device's OpenCL is its own.
SYSTEM = ("libc.", "libm.", "libdl.", "libpthread.", "librt.", "libatomic.", "ld-linux", "ld-musl", "libOpenCL.")

_DYNAMIC, _VERSIONS_NEEDED = 6, 0x6FFFFFFE
_NEEDED = 1
#: No library has more entries in its tables, nor a longer name.
_MOST_ENTRIES, _LONGEST_NAME = 10_000, 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ElfNeeds:
    """What a program or a library needs."""

    #: 32 or 64 bits, and the number of its machine.
    machine: tuple[int, int]
    #: The libraries that it is linked with.
    libraries: tuple[str, ...]
    #: Versions of symbols by the library that has them: ``GLIBC_2.34``.
    versions: frozenset[str]

    @property
    def least_glibc(self) -> tuple[int, ...] | None:
        """The oldest glibc that has all; None where it needs none."""
        told = (each.removeprefix("GLIBC_") for each in self.versions if each.startswith("GLIBC_"))
        numbers = [tuple(map(int, each.split("."))) for each in told if each.replace(".", "").isdecimal()]
        return max(numbers, default=None)


class _File:
    """An ELF file of this byte order, with as much as is needed of its sections."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self._n_entries = 0
        self.bits = {1: 32, 2: 64}[content[4]]
        self.machine = struct.unpack_from("<H", content, 18)[0]
        at, form = (40, "<Q") if self.bits == 64 else (32, "<I")
        self._sections_at = struct.unpack_from(form, content, at)[0]
        self._entry_bytes, self._n_sections = struct.unpack_from("<HH", content, 58 if self.bits == 64 else 46)

    def sections(self, kind: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield where each section of a kind is, its size, its link and its info."""
        form = "<4xI16xQQII" if self.bits == 64 else "<4xI8xIIII"
        for number in range(self._n_sections):
            found = struct.unpack_from(form, self.content, self._sections_at + number * self._entry_bytes)
            if found[0] == kind:
                yield found[1], found[2], found[3], found[4]

    def section_at(self, number: int) -> int:
        """Return where a section by its number is."""
        at = self._sections_at + number * self._entry_bytes
        form, where = ("<Q", 24) if self.bits == 64 else ("<I", 16)
        return int(struct.unpack_from(form, self.content, at + where)[0])

    def text(self, at: int) -> str:
        """Return the text at a place."""
        return self.content[at : self.content.index(b"\0", at, at + _LONGEST_NAME)].decode("ascii", "replace")

    def _count(self) -> None:
        """Count an entry of a table: a damaged one may lead round in a circle."""
        self._n_entries += 1
        if self._n_entries > _MOST_ENTRIES:
            raise ValueError(f"it has more than {_MOST_ENTRIES:,} entries")

    def needed(self) -> Iterator[str]:
        """Yield the libraries that it is linked with."""
        form, size = ("<qQ", 16) if self.bits == 64 else ("<iI", 8)
        for at, n_bytes, link, _ in self.sections(_DYNAMIC):
            for place in range(at, at + n_bytes, size):
                self._count()
                tag, value = struct.unpack_from(form, self.content, place)
                if tag == _NEEDED:
                    yield self.text(self.section_at(link) + value)

    def versions(self) -> Iterator[str]:
        """Yield the versions of symbols that it needs."""
        for at, _, link, n_libraries in self.sections(_VERSIONS_NEEDED):
            for _ in range(n_libraries):
                self._count()
                n_versions, first, following = struct.unpack_from("<2xH4xII", self.content, at)
                version_at = at + first
                for _ in range(n_versions):
                    self._count()
                    name, next_version = struct.unpack_from("<8xII", self.content, version_at)
                    yield self.text(self.section_at(link) + name)
                    version_at += next_version
                at += following


def read_needs(path: Path) -> ElfNeeds:
    """Read what a program or a library needs; raises `NativeBuildError` for what is no ELF file of a little-endian."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise NativeBuildError(f"{path}: cannot be read ({error.strerror}); look at its compiler") from error
    try:
        if content[:4] != b"\x7fELF" or content[5] != 1:
            raise ValueError("it does not begin as one")
        file = _File(content)
        return ElfNeeds(
            machine=(file.bits, file.machine), libraries=tuple(file.needed()), versions=frozenset(file.versions())
        )
    except (ValueError, KeyError, IndexError, OverflowError, struct.error) as error:
        raise NativeBuildError(f"{path}: is not a readable ELF file ({error}); look at its compiler") from error
