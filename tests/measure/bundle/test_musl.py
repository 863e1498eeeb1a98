"""musl for a bundle: the same file for everybody, installed or downloaded."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from perfsuite.errors import NativeBuildError
from perfsuite.measure.bundle import musl
from perfsuite.measure.bundle.targets import find_target

LIBRARY = b"musl, as Debian built it"


def package(member: str = "./lib/aarch64-linux-musl/libc.so") -> bytes:
    """Return a package as Debian makes them; its first member has an odd number of bytes."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:xz") as files:
        about = tarfile.TarInfo(member)
        about.size = len(LIBRARY)
        files.addfile(about, io.BytesIO(LIBRARY))
    members = {"debian-binary": b"2.0", "data.tar.xz": data.getvalue()}
    return b"!<arch>\n" + b"".join(
        f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        + content
        + b"\n" * (len(content) % 2)
        for name, content in members.items()
    )


def tell(what: str, n_done: int = 0, n_all: int | None = None, /) -> None:
    """Say nothing."""


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[dict[str, bytes]], list[str]]:
    """Let URLs with certain words in them answer, and others not; return what is asked for."""

    def serve(answers: dict[str, bytes]) -> list[str]:
        asked: list[str] = []

        def urlopen(url: str, timeout: float) -> io.BytesIO:
            asked.append(url)
            for word, answer in answers.items():
                if word in url:
                    return io.BytesIO(answer)
            raise OSError("Network is unreachable")

        whole = package()
        wanted = musl._Package("arm64", "5ha1", hashlib.sha256(whole).hexdigest(), hashlib.sha256(LIBRARY).hexdigest())
        monkeypatch.setattr(musl, "_PACKAGES", {"aarch64": wanted})
        monkeypatch.setattr(musl, "_INSTALLED", tmp_path / "installed")
        monkeypatch.setattr("urllib.request.urlopen", urlopen)
        return asked

    return serve


def test_what_is_downloaded_is_kept(served: Callable[[dict[str, bytes]], list[str]], tmp_path: Path) -> None:
    """Debian's archive is asked once; another place where it has another file, or none."""
    asked = served({"pool/main": b"gone", "snapshot": package()})
    target = find_target("aarch64-linux-musl")
    kept = musl.find_musl(target, tmp_path, tell)
    assert kept.read_bytes() == LIBRARY
    assert [url.rsplit("/", 1)[1] for url in asked] == ["musl_1.2.3-1_arm64.deb", "5ha1"]
    assert musl.find_musl(target, tmp_path, tell) == kept
    assert len(asked) == 2


def test_an_installed_one_is_taken_where_it_is_the_same(
    served: Callable[[dict[str, bytes]], list[str]], tmp_path: Path
) -> None:
    """Another build of it would count otherwise, so it is downloaded then, and a kept one that was changed as well."""
    asked = served({"pool/main": package()})
    installed = tmp_path / "installed" / "ld-musl-aarch64.so.1"
    installed.parent.mkdir()
    installed.write_bytes(LIBRARY)
    target = find_target("aarch64-linux-musl")
    assert (musl.find_musl(target, tmp_path, tell), asked) == (installed, [])
    installed.write_bytes(b"musl 1.2.6")
    kept = musl.find_musl(target, tmp_path, tell)
    assert (kept.read_bytes(), len(asked)) == (LIBRARY, 1)
    kept.write_bytes(b"cut off")
    assert (musl.find_musl(target, tmp_path, tell).read_bytes(), len(asked)) == (LIBRARY, 2)


def test_without_the_network_both_places_are_named(
    served: Callable[[dict[str, bytes]], list[str]], tmp_path: Path
) -> None:
    """What was tried and why it failed is said, with the file that a user can bring."""
    served({"snapshot": b"an error page"})
    with pytest.raises(NativeBuildError) as raised:
        musl.find_musl(find_target("aarch64-linux-musl"), tmp_path, tell)
    assert "deb.debian.org/debian/pool/main/m/musl/musl_1.2.3-1_arm64.deb: Network is unreachable" in str(raised.value)
    assert "snapshot.debian.org/file/5ha1: is another file" in str(raised.value)
    assert f"put the libc.so of that package of Debian at {tmp_path / 'musl' / '1.2.3-1-aarch64.so'}" in str(
        raised.value
    )
