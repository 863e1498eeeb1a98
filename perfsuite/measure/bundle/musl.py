"""musl, which a bundle takes along: one build of it for everybody, so that it does the same work everywhere."""

from __future__ import annotations

import hashlib
import io
import lzma
import tarfile
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from perfsuite.errors import NativeBuildError
from perfsuite.measure.bundle.steps import Tell
from perfsuite.measure.bundle.targets import BundleTarget
from perfsuite.records.whole_file import make_folder, write_whole_bytes

_VERSION = "1.2.3-1"

#: Where packages of Debian lie for some years, and, by their SHA-1, for ever.
_PLACES = (
    "https://deb.debian.org/debian/pool/main/m/musl/musl_{version}_{architecture}.deb",
    "https://snapshot.debian.org/file/{sha1}",
)
_LIMIT_S = 60.0
_LARGEST_BYTES = 4 << 20

#: Where Debian installs it, by musl's own name for an architecture.
_INSTALLED = Path("/lib")


@dataclass(frozen=True, slots=True)
class _Package:
    """Debian's package of musl for an architecture; *source*: Debian 12."""

    architecture: str
    sha1: str
    sha256: str
    #: Of the library in it.
    library_sha256: str


_PACKAGES = {
    "x86_64": _Package(
        "amd64",
        "da5d506fa7df256e2a5aa1be69569e3ea3497ed4",
        "4fc1e3d9b579f5c682ca99a4d45aec08d72a2e6b82b4c2e1bbcb7095466ae96d",
        "99261882506dab043f8b30d6f0b1fa4a4c697d92139b5483cf1981074a967682",
    ),
    "aarch64": _Package(
        "arm64",
        "4007a673c529401a01b67c13708edc223453a947",
        "6ccf2bf0f479b00411cb8e1eeb048e648718170db5d63bbb4bf4a89350b81468",
        "4fe353b2b485ffc2905b400ca8ab364b88d402ca11adec3553cb5f8928bb01b9",
    ),
}


def find_musl(target: BundleTarget, cache_dir: Path, tell: Tell) -> Path:
    """Return musl for a target: the installed one where it is the same, else Debian's, downloaded once.

    Raises NativeBuildError: it cannot be had, or is another one than it must be.
    """
    machine = target.machines[0]
    package = _PACKAGES[machine]
    kept = cache_dir / "musl" / f"{_VERSION}-{machine}.so"
    for path in (kept, _INSTALLED / f"ld-musl-{machine}.so.1"):
        if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == package.library_sha256:
            return path
    tell(f"downloading musl {_VERSION} for {machine}")
    make_folder(kept.parent)
    library = _library(_downloaded(package, kept), machine)
    write_whole_bytes(kept, library, NativeBuildError)
    return kept


def _downloaded(package: _Package, kept: Path) -> bytes:
    failures = []
    for place in _PLACES:
        url = place.format(version=_VERSION, architecture=package.architecture, sha1=package.sha1)
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
        f"musl {_VERSION}, which the bundle takes along, cannot be downloaded ({'; '.join(failures)}); "
        f"put the libc.so of that package of Debian at {kept}"
    )


def _library(package: bytes, machine: str) -> bytes:
    """Return libc.so of a package: an archive of ar, in which data.tar.xz is what is installed."""
    position = len(b"!<arch>\n")
    while (header := package[position : position + 60]) and not header.startswith(b"data.tar.xz"):
        size_bytes = int(header[48:58])
        position += 60 + size_bytes + size_bytes % 2
    begin = position + 60
    data = lzma.decompress(package[begin : begin + int(header[48:58])])
    with tarfile.open(fileobj=io.BytesIO(data)) as files:
        library = files.extractfile(f"./lib/{machine}-linux-musl/libc.so")
        assert library is not None
        return library.read()
