"""Packages of Debian: the same files for everybody, downloaded once."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from perfsuite.errors import NativeBuildError
from perfsuite.measure.debian_packages import DebianPackage, unpacked

LIBRARY = b"musl, as Debian built it"


def archive() -> bytes:
    """Return a package as Debian makes them; its first member has an odd number of bytes."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:xz") as files:
        for name in ("./lib/aarch64-linux-musl/libc.so", "./usr/share/doc/musl/copyright"):
            about = tarfile.TarInfo(name)
            about.size = len(LIBRARY)
            files.addfile(about, io.BytesIO(LIBRARY))
    members = {"debian-binary": b"2.0", "data.tar.xz": data.getvalue()}
    return b"!<arch>\n" + b"".join(
        f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        + content
        + b"\n" * (len(content) % 2)
        for name, content in members.items()
    )


PACKAGE = DebianPackage(
    place="m/musl/musl_1.2.3-1_arm64.deb",
    sha1="5ha1",
    sha256=hashlib.sha256(archive()).hexdigest(),
    parts=("./lib/*/libc.so",),
)

Serve = Callable[[dict[str, bytes]], list[str]]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Let URLs with certain words in them answer, and others not; return what is asked for."""

    def serve(answers: dict[str, bytes]) -> list[str]:
        asked: list[str] = []

        def urlopen(url: str, timeout: float) -> io.BytesIO:
            asked.append(url)
            for word, answer in answers.items():
                if word in url:
                    return io.BytesIO(answer)
            raise OSError("Network is unreachable")

        monkeypatch.setattr("urllib.request.urlopen", urlopen)
        return asked

    return serve


def test_what_is_downloaded_is_kept(served: Serve, tmp_path: Path) -> None:
    """Debian's archive is asked once; another place where it has another file, or none. What is not used is left."""
    asked, said = served({"pool/main": b"gone", "snapshot": archive()}), list[str]()
    folder = unpacked(PACKAGE, tmp_path, said.append)
    assert [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()] == [
        "lib/aarch64-linux-musl/libc.so"
    ]
    assert (folder / "lib" / "aarch64-linux-musl" / "libc.so").read_bytes() == LIBRARY
    assert [url.rsplit("/", 1)[1] for url in asked] == ["musl_1.2.3-1_arm64.deb", "5ha1"]
    assert said == ["downloading musl_1.2.3-1_arm64.deb"]
    assert unpacked(PACKAGE, tmp_path, said.append) == folder
    assert len(asked) == 2


def test_without_the_network_both_places_are_named(served: Serve, tmp_path: Path) -> None:
    """What was tried and why it failed is said, with the folder that a user can bring; nothing half made stays."""
    served({"snapshot": b"an error page"})
    with pytest.raises(NativeBuildError) as raised:
        unpacked(PACKAGE, tmp_path, str)
    assert "deb.debian.org/debian/pool/main/m/musl/musl_1.2.3-1_arm64.deb: Network is unreachable" in str(raised.value)
    assert "snapshot.debian.org/file/5ha1: is another file" in str(raised.value)
    assert f"unpack it to {tmp_path / 'debian' / 'musl_1.2.3-1_arm64'} (dpkg-deb -x)" in str(raised.value)
    assert list(tmp_path.iterdir()) == []
