"""What a bundle holds: the folder by which a device without Python is measured, as its ``manifest.json`` says."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from perfsuite.errors import DeviceError
from perfsuite.records.codec import Name, Size, content_of, from_plain, parsed_json, to_plain
from perfsuite.records.whole_file import file_digest, write_json

MANIFEST_NAME = "manifest.json"

WORKER, LIBRARIES, ENGINE, LAYERS = "perfsuite-worker", "lib", "engine", "layers"

#: The C library of a bundle that brings its own, which starts its programs.
LOADER = f"{LIBRARIES}/ld-musl.so"

_SCHEMA = 1
_TODO = "make it anew with 'perfsuite bundle'"

#: A name in a bundle: plain letters, so that every shell takes it, and no hidden part.
_PART = r"[A-Za-z0-9_][A-Za-z0-9._+-]*"
_PATH = re.compile(rf"{_PART}(/{_PART})*")


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledFile:
    """A file of a bundle."""

    #: Below the bundle, with ``/``.
    path: str
    size_bytes: Size
    sha256: Name
    is_program: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledEngine:
    """The llama.cpp of a bundle, with the fields of `perfsuite.measure.engine.Engine`."""

    library_dir: str
    #: Empty: nothing is compiled on a device.
    include_dirs: tuple[str, ...]
    build_id: Name
    has_blas: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleManifest:
    """What a bundle is for, what it was made of, and its files."""

    suite_version: Name
    plan_schema: int
    #: Sixteen hex digits over all files.
    digest: Name
    #: As compilers name it: ``aarch64-linux-gnu``; and what ``uname -m`` says there.
    target: Name
    machines: tuple[str, ...]
    #: What its processors must have: ``armv8.2-a+dotprod``.
    processor: Name
    compiler: Name
    flags: tuple[str, ...]
    settings: tuple[str, ...]
    #: Which llama.cpp: ``llama-cpp-python 0.3.36``, or a checkout's folder and commit; and a hash of its sources.
    llama: Name
    llama_digest: Name
    engine: BundledEngine
    #: The oldest glibc that has all that it calls; None where it needs none, or another C library.
    least_glibc: str | None
    files: tuple[BundledFile, ...]

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.files)


def content_digest(files: Iterable[BundledFile]) -> str:
    """Return sixteen hex digits over the names, the contents and the modes of files."""
    rows = sorted((each.path, each.sha256, each.is_program) for each in files)
    return hashlib.sha256(repr(rows).encode()).hexdigest()[:16]


def listed_files(folder: Path, programs: Iterable[str]) -> tuple[BundledFile, ...]:
    """Return the files of a folder, except its manifest."""
    run = set(programs)
    paths = sorted(each for each in folder.rglob("*") if each.is_file() and each.name != MANIFEST_NAME)
    return tuple(
        BundledFile(path=name, size_bytes=path.stat().st_size, sha256=file_digest(path), is_program=name in run)
        for path in paths
        for name in (path.relative_to(folder).as_posix(),)
    )


def write_manifest(folder: Path, manifest: BundleManifest) -> None:
    """Write a bundle's manifest into its folder."""
    write_json(folder / MANIFEST_NAME, {"schema": _SCHEMA, **to_plain(manifest)}, DeviceError)


def read_manifest(folder: Path) -> BundleManifest:
    """Read the manifest of a bundle; raises DeviceError where there is none, or it was altered."""
    path = folder / MANIFEST_NAME
    return parse_manifest(content_of(path, DeviceError, f"name the folder of a bundle, or {_TODO}"), str(path))


def parse_manifest(text: str | bytes, where: str) -> BundleManifest:
    """Read the text of a manifest; raises DeviceError for what is none, and where its digest is not of its files."""
    plain = parsed_json(text, where, DeviceError, _TODO)
    manifest = from_plain(plain, BundleManifest, where, DeviceError, _TODO, schema=_SCHEMA)
    for each in manifest.files:
        if not _PATH.fullmatch(each.path):
            raise DeviceError(f"{where}: {json.dumps(each.path)} is not a name of a file in a bundle; {_TODO}")
    if (seen := content_digest(manifest.files)) != manifest.digest:
        raise DeviceError(f"{where}: names files with digest {seen}, and itself {manifest.digest}; {_TODO}")
    return manifest


def check_bundle(folder: Path) -> BundleManifest:
    """Return the manifest of a bundle whose files are those that it names.

    Raises DeviceError: a file is missing, is altered, or is none of the bundle's.
    """
    manifest = read_manifest(folder)
    there = {each.path: each for each in listed_files(folder, ())}
    for each in manifest.files:
        seen = there.pop(each.path, None)
        if seen is None:
            raise DeviceError(f"{folder / each.path}: is missing, the manifest names it; {_TODO}")
        if seen.sha256 != each.sha256:
            told = f"has {seen.size_bytes} bytes, sha256 {seen.sha256[:16]}"
            wanted = f"the manifest says {each.size_bytes} bytes, {each.sha256[:16]}"
            raise DeviceError(f"{folder / each.path}: {told}, {wanted}; {_TODO}")
    if there:
        raise DeviceError(f"{folder / min(there)}: is none of the files that the manifest names; {_TODO}")
    return manifest
