"""Packages of Debian by version and hash, for what must be the same wherever work is counted."""

from __future__ import annotations

import hashlib
import io
import tarfile
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from http.client import HTTPException
from pathlib import Path

from perfsuite.device.work_folder import sweep_once, work_folder
from perfsuite.errors import NativeBuildError
from perfsuite.records.whole_file import make_folder, place_folder

#: Where packages lie for some years, and, by their SHA-1, for ever.
_PLACES = (
    "https://deb.debian.org/debian/pool/main/{package.place}",
    "https://snapshot.debian.org/file/{package.sha1}",
)
_LIMIT_S = 120.0
_LARGEST_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DebianPackage:
    """One file of Debian's archive."""

    #: In the archive, such as ``m/musl/musl_1.2.3-1_amd64.deb``.
    place: str
    sha1: str
    sha256: str
    #: The files of it that are used, by the patterns of a shell.
    parts: tuple[str, ...]

    @property
    def file(self) -> str:
        return self.place.rpartition("/")[2]


_MUSL_PARTS = ("./lib/*/libc.so",)
#: By machine; *source*: Debian 12.
MUSL = {
    "x86_64": DebianPackage(
        place="m/musl/musl_1.2.3-1_amd64.deb",
        sha1="da5d506fa7df256e2a5aa1be69569e3ea3497ed4",
        sha256="4fc1e3d9b579f5c682ca99a4d45aec08d72a2e6b82b4c2e1bbcb7095466ae96d",
        parts=_MUSL_PARTS,
    ),
    "aarch64": DebianPackage(
        place="m/musl/musl_1.2.3-1_arm64.deb",
        sha1="4007a673c529401a01b67c13708edc223453a947",
        sha256="6ccf2bf0f479b00411cb8e1eeb048e648718170db5d63bbb4bf4a89350b81468",
        parts=_MUSL_PARTS,
    ),
}

_VALGRIND_PARTS = (
    *("./usr/include/*", "./usr/libexec/valgrind/vgpreload_core-*"),
    *(f"./usr/lib/*/lib{name}-a*64-linux.a" for name in ("coregrind", "vex", "gcc-sup")),
)
#: By machine, the first that knows Arm's dot products; *source*: Debian 13.
VALGRIND = {
    "x86_64": DebianPackage(
        place="v/valgrind/valgrind_3.24.0-3_amd64.deb",
        sha1="00abc56f6ac2554e0576b48b387fcb6570bc739a",
        sha256="0359e30820ccee7ee5c8d4c951ca276e3978b18f157d71bd77981de05b344907",
        parts=_VALGRIND_PARTS,
    ),
    "aarch64": DebianPackage(
        place="v/valgrind/valgrind_3.24.0-3_arm64.deb",
        sha1="3d4c4d31bea5fccbb3aa84f1f5c4f4c830c5b786",
        sha256="77c79eb0fa410c2faf9feae46d603aa0915b8c9b7a48d16e872c635d2082db0c",
        parts=_VALGRIND_PARTS,
    ),
}


def unpacked(package: DebianPackage, cache_dir: Path, tell: Callable[[str], object]) -> Path:
    """Return the folder with the files of a package that are used; it is downloaded once.

    Raises NativeBuildError: it cannot be had, or is another one than it must be.
    """
    folder = cache_dir / "debian" / package.file.removesuffix(".deb")
    if folder.is_dir():
        return folder
    tell(f"downloading {package.file}")
    content = _downloaded(package, folder)
    try:
        make_folder(folder.parent)
        sweep_once(str(folder.parent))
        with work_folder(folder.parent) as work:
            _unpack(content, package.parts, work / folder.name)
            place_folder(work / folder.name, folder)
    except OSError as error:
        if not folder.is_dir():  # another process may have been there first
            raise NativeBuildError(f"{folder}: cannot be written ({error.strerror})") from error
    return folder


def _downloaded(package: DebianPackage, folder: Path) -> bytes:
    failures = []
    for url in (place.format(package=package) for place in _PLACES):
        try:
            with urllib.request.urlopen(url, timeout=_LIMIT_S) as answer:  # nosec B310  # https, as above
                content: bytes = answer.read(_LARGEST_BYTES)
        except (OSError, HTTPException) as error:
            failures.append(f"{url}: {error}")
            continue
        if hashlib.sha256(content).hexdigest() == package.sha256:
            return content
        failures.append(f"{url}: is another file")
    raise NativeBuildError(
        f"{package.file}: cannot be downloaded ({'; '.join(failures)}); unpack it to {folder} (dpkg-deb -x)"
    )


def _unpack(package: bytes, parts: Sequence[str], to: Path) -> None:
    """Write files of a package: an archive of ar, in which data.tar.xz is what is installed."""
    position = len(b"!<arch>\n")
    while (header := package[position : position + 60]) and not header.startswith(b"data.tar.xz"):
        n_bytes = int(header[48:58])
        position += 60 + n_bytes + n_bytes % 2
    with tarfile.open(fileobj=io.BytesIO(package[position + 60 :][: int(header[48:58])]), mode="r:xz") as files:
        for member in files:
            content = files.extractfile(member) if any(fnmatchcase(member.name, part) for part in parts) else None
            if content is not None:
                path = to / member.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.read())
                path.chmod(member.mode & 0o755)
