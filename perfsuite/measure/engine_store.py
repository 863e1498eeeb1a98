"""The store of engines: what made a baseline, by content, so that it can be measured again beside something new.

An entry is a folder that is named by a hash of its files: a build of llama.cpp with its headers, and with
the libraries of the same folder that they need, or the sources of the suite's own kernels. Nothing in it is executed
but by a run whose baseline names it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import re
import shutil
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from perfsuite.device.work_folder import sweep_once, work_folder
from perfsuite.errors import EngineError, NativeBuildError
from perfsuite.measure.bundle.elf import SYSTEM, read_needs
from perfsuite.measure.engine import Engine
from perfsuite.records.codec import parse_json
from perfsuite.records.whole_file import file_digest, make_folder, place_folder, write_json, write_whole_binary
from perfsuite.units import format_bytes

#: The sources of the suite's own kernels.
KERNELS_DIR = Path(__file__).with_name("kernels")

ENGINE, KERNELS = "llama.cpp", "kernels"

#: The most that one entry may have, and by default the whole store.
ENTRY_LIMIT_BYTES = 2 << 30
STORE_LIMIT_BYTES = 8 << 30

MANIFEST = "manifest.json"
_SCHEMA = 1
_LIBRARIES = re.compile(r"lib(llama|ggml|mtmd)[\w.+-]*?\.so(\.\d+)*")
_LIBRARY = re.compile(r"lib\w[\w.+-]*\.so(\.\d+)*")
_HEADERS = re.compile(r"(llama|ggml|gguf|mtmd)[\w-]*\.h")
_PARTS = re.compile(r"(lib|include|kernels)/\w[\w.+-]*")
_ID = re.compile(r"[0-9a-f]{16}")
#: What a CMake cache says of how llama.cpp was built.
_SETTINGS = re.compile(
    r"^((?:GGML|LLAMA)_\w+|CMAKE_(?:BUILD_TYPE|C(?:XX)?_(?:FLAGS|COMPILER))):\w+=(.+)$", re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEngine:
    """An entry of the store."""

    #: Sixteen hex digits over the files' names and contents.
    engine_id: str
    #: `ENGINE` or `KERNELS`.
    kind: str
    #: By path within the entry: SHA-256 of a file.
    files: Mapping[str, str]
    n_bytes: int
    #: When it was kept, in UTC.
    kept_at: str
    #: As `Engine.build_id`; empty for kernels.
    build_id: str = ""
    #: What the engine says of its version and commit, where that is known.
    version: str = ""
    #: How it was built, as CMake's cache has it, where there is one.
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStore:
    """The entries in a folder of the cache."""

    folder: Path
    limit_bytes: int = STORE_LIMIT_BYTES

    def entries(self) -> tuple[StoredEngine, ...]:
        """Return what is kept, the oldest first; a folder whose manifest cannot be read is left out."""
        found = []
        for path in self.folder.glob(f"*/{MANIFEST}"):
            try:
                found.append(_read_manifest(path))
            except EngineError:
                continue
        return tuple(sorted(found, key=lambda each: (each.kept_at, each.engine_id)))

    def damaged(self) -> tuple[str, ...]:
        """Name the folders that are no whole entries."""
        known = {each.engine_id for each in self.entries()}
        return tuple(sorted(each.name for each in self.folder.glob("[0-9a-f]*") if each.name not in known))

    def find(self, start: str) -> StoredEngine:
        """Return the entry whose id begins so; `EngineError` where none does, or more than one."""
        found = [each for each in self.entries() if start and each.engine_id.startswith(start)]
        if len(found) != 1:
            seen = ", ".join(each.engine_id for each in found or self.entries()) or "nothing"
            raise EngineError(f"{start}: {len(found)} engines have an id that begins so; {self.folder} holds {seen}")
        return found[0]

    def folder_of(self, engine_id: str) -> Path | None:
        """Return where an entry lies; None where it is not kept.

        Raises `EngineError` where it is there, and is not what its hash says.
        """
        path = self.folder / engine_id
        if not is_engine_id(engine_id) or not (path / MANIFEST).is_file():
            return None
        check_entry(_read_manifest(path / MANIFEST), engine_id, path, lambda name: _digest(path / name))
        return path

    def keep_engine(self, engine: Engine, version: str = "") -> StoredEngine:
        """Keep a build of llama.cpp: its shared libraries and headers.

        Raises `EngineError` where it is too large, or the store is full or cannot be written.
        """
        libraries = _with_needed(_named(engine.library_dir, _LIBRARIES))
        headers = {name: path for each in engine.include_dirs for name, path in _named(each, _HEADERS).items()}
        sources = {f"lib/{name}": path for name, path in libraries.items()}
        sources |= {f"include/{name}": path for name, path in headers.items()}
        return self._keep(
            ENGINE, sources, build_id=engine.build_id, version=version, settings=_settings(engine.library_dir)
        )

    def keep_kernels(self, kernels_dir: Path) -> StoredEngine:
        """Keep the sources of kernels; raises as `keep_engine`."""
        sources = {f"kernels/{path.name}": path for path in sorted(kernels_dir.glob("*.cl"))}
        return self._keep(KERNELS, sources)

    def write_archive(self, engine_id: str, path: Path) -> None:
        """Write an entry as one file, whole or not at all.

        Raises `EngineError` where it is not kept, is damaged, or the file cannot be written.
        """
        folder = self.folder_of(engine_id)
        if folder is None:
            raise EngineError(f"{engine_id}: is not kept in {self.folder}; 'perfsuite engines list' shows what is")

        def fill(out: BinaryIO) -> None:
            with tarfile.open(fileobj=out, mode="w:gz", dereference=True, compresslevel=6) as archive:
                for name in (MANIFEST, *_read_manifest(folder / MANIFEST).files):
                    archive.add(folder / name, arcname=f"{engine_id}/{name}", filter=_anonymous)

        write_whole_binary(path, fill, EngineError)

    def read_archive(self, path: Path) -> StoredEngine:
        """Take an entry from the file that `write_archive` wrote; every file in it is checked by its hash.

        Raises `EngineError` where it is no such file, holds anything else, is too large, or the store is full or cannot
        be written.
        """
        try:
            with tarfile.open(path, "r:gz") as archive, self._draft() as draft:
                entry = _unpacked(archive, path, draft)
                return self._taken(draft, entry)
        except (OSError, tarfile.TarError, EOFError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise EngineError(
                f"{path}: is not an archive of an engine ({reason}); 'perfsuite engines export' writes them"
            ) from error

    def remove(self, engine_id: str) -> bool:
        """Remove an entry; return False, and leave it, where a run is using it."""
        folder = self.folder / engine_id
        try:
            with (folder / MANIFEST).open() as manifest:
                fcntl.flock(manifest, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with work_folder(self.folder) as work:
                    folder.rename(work / "removed")  # from here on it is no entry, whatever becomes of it
        except BlockingIOError:
            return False
        except OSError as error:
            raise EngineError(f"{folder}: cannot be removed ({error.strerror})") from error
        return True

    @contextmanager
    def in_use(self, engine_id: str) -> Iterator[None]:
        """Keep an entry from being removed meanwhile."""
        with (self.folder / engine_id / MANIFEST).open() as manifest:
            fcntl.flock(manifest, fcntl.LOCK_SH)
            yield

    def _keep(
        self,
        kind: str,
        sources: Mapping[str, Path],
        *,
        build_id: str = "",
        version: str = "",
        settings: Mapping[str, str] | None = None,
    ) -> StoredEngine:
        sweep_once(str(self.folder))
        digests = {name: _digest(path) for name, path in sources.items()}
        engine_id = entry_id(digests)
        if (found := self._known(engine_id)) is not None:
            return found
        n_bytes = sum({digests[name]: path.stat().st_size for name, path in sources.items()}.values())
        self._refuse_too_much(n_bytes)
        entry = StoredEngine(
            engine_id=engine_id,
            kind=kind,
            files=digests,
            n_bytes=n_bytes,
            kept_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            build_id=build_id,
            version=version,
            settings=settings or {},
        )
        try:
            with self._draft() as draft:
                _copy(sources, digests, draft)
                return self._taken(draft, entry)
        except OSError as error:
            raise EngineError(f"{self.folder}: cannot be written ({error.strerror}); the engine is not kept") from error

    def _known(self, engine_id: str) -> StoredEngine | None:
        """Return an entry that is kept whole; a damaged one goes, for its like is at hand."""
        try:
            folder = self.folder_of(engine_id)
        except EngineError:
            self.remove(engine_id)
            return None
        return None if folder is None else _read_manifest(folder / MANIFEST)

    def _refuse_too_much(self, n_bytes: int) -> None:
        if n_bytes > ENTRY_LIMIT_BYTES:
            raise EngineError(
                f"an engine of {format_bytes(n_bytes)} is not kept; the limit is {format_bytes(ENTRY_LIMIT_BYTES)}"
            )
        used = sum(each.n_bytes for each in self.entries())
        if used + n_bytes > self.limit_bytes:
            raise EngineError(
                f"{self.folder}: holds {format_bytes(used)}, and {format_bytes(n_bytes)} more are beyond its limit of "
                f"{format_bytes(self.limit_bytes)}; make room with 'perfsuite engines prune'"
            )

    @contextmanager
    def _draft(self) -> Iterator[Path]:
        """Give a folder beside the entries, which is gone afterwards unless it has become one."""
        make_folder(self.folder)
        with work_folder(self.folder) as work:
            draft = work / "entry"
            draft.mkdir()
            yield draft

    def _taken(self, draft: Path, entry: StoredEngine) -> StoredEngine:
        """Let a draft become the entry, unless somebody else was first with the same."""
        write_json(draft / MANIFEST, {"schema": _SCHEMA, **asdict(entry)}, EngineError)
        draft.chmod(0o755)
        if (known := self._known(entry.engine_id)) is not None:
            return known
        try:
            place_folder(draft, self.folder / entry.engine_id)
        except OSError:
            if self.folder_of(entry.engine_id) is None:
                raise
        return entry


def check_entry(entry: StoredEngine, engine_id: str, where: Path, digest: Callable[[str], str]) -> None:
    """Raise `EngineError` unless an entry's files are those of its id, by their digests now."""
    changed = [name for name, before in entry.files.items() if digest(name) != before]
    if changed or entry.engine_id != engine_id or entry_id(entry.files) != engine_id:
        what = f"{changed[0]} has another content" if changed else "its files are not those of its id"
        raise EngineError(f"{where}: is damaged ({what} than when it was kept); remove the folder and record again")


def is_engine_id(text: str) -> bool:
    """Whether a text can be the id of an entry."""
    return _ID.fullmatch(text) is not None


def is_library(name: str) -> bool:
    """Whether a file of that name, in a folder that a bundle brought, is a library of its build."""
    return _LIBRARY.fullmatch(name) is not None


def manifest_content(entry: StoredEngine) -> bytes:
    """Return what an entry's manifest holds."""
    return json.dumps({"schema": _SCHEMA, **asdict(entry)}).encode()


def open_store(cache_dir: Path) -> EngineStore:
    """Return the store in a cache."""
    return EngineStore(folder=cache_dir / "engines")


def engine_folder(entry_folder: Path) -> Path:
    """Return the folder of an entry's libraries, as `perfsuite.measure.engine.find_engine` takes it."""
    return entry_folder / "lib"


def kernels_folder(entry_folder: Path) -> Path:
    """Return the folder of an entry's kernel sources."""
    return entry_folder / "kernels"


def _named(folder: Path, pattern: re.Pattern[str]) -> dict[str, Path]:
    return {path.name: path for path in sorted(folder.iterdir()) if pattern.fullmatch(path.name) and path.is_file()}


def _with_needed(libraries: dict[str, Path]) -> dict[str, Path]:
    """Return libraries, with those of their folder that they need, such as OpenMP's, and no system is sure to have."""
    found, queue = dict(libraries), list(libraries.values())
    for path in queue:
        with suppress(NativeBuildError):  # it is no library of this kind of machine
            needed = [path.with_name(name) for name in read_needs(path).libraries if not name.startswith(SYSTEM)]
            queue += (beside := [each for each in needed if each.name not in found and each.is_file()])
            found |= {each.name: each for each in beside}
    return found


def _settings(library_dir: Path) -> dict[str, str]:
    """Return what the nearest CMake cache above says of how the libraries were built."""
    caches = (each / "CMakeCache.txt" for each in (library_dir, *library_dir.parents[:2]))
    cache = next((each for each in caches if each.is_file()), None)
    return {} if cache is None else dict(_SETTINGS.findall(cache.read_text(errors="replace")))


def _copy(sources: Mapping[str, Path], digests: Mapping[str, str], draft: Path) -> None:
    """Copy the files, those with the same content once; the others are links to it."""
    first: dict[str, PurePosixPath] = {}
    for name, source in sources.items():
        target = draft / name
        target.parent.mkdir(exist_ok=True)
        same = first.setdefault(digests[name], PurePosixPath(name))
        if same != PurePosixPath(name) and same.parent == PurePosixPath(name).parent:
            target.symlink_to(same.name)
        else:
            shutil.copyfile(source, target)
            target.chmod(0o755 if name.startswith("lib/") else 0o644)


def _unpacked(archive: tarfile.TarFile, path: Path, draft: Path) -> StoredEngine:
    """Write the files of an archive, as far as its manifest names them, and check each."""
    members = {each.name.partition("/")[2]: each for each in archive.getmembers()}
    if MANIFEST not in members or any(not each.isfile() for each in members.values()):
        raise EngineError(f"{path}: is not an archive of an engine; 'perfsuite engines export' writes them")
    entry = read_entry(_content(archive, members[MANIFEST]), path)
    if members.keys() != {MANIFEST, *entry.files}:
        raise EngineError(f"{path}: holds other files than its manifest names; export the engine again")
    if sum(each.size for each in members.values()) > ENTRY_LIMIT_BYTES:
        raise EngineError(f"{path}: unpacks to more than the limit of {format_bytes(ENTRY_LIMIT_BYTES)}")
    unpacked = draft / ".unpacked"
    unpacked.mkdir()
    for number, name in enumerate(entry.files):
        content = _content(archive, members[name])
        if hashlib.sha256(content).hexdigest() != entry.files[name]:
            raise EngineError(f"{path}: {name} has another content than the manifest says; export the engine again")
        (unpacked / str(number)).write_bytes(content)
    _copy({name: unpacked / str(number) for number, name in enumerate(entry.files)}, entry.files, draft)
    shutil.rmtree(unpacked)
    return entry


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert file is not None
    return file.read()


def _read_manifest(path: Path) -> StoredEngine:
    try:
        return read_entry(path.read_bytes(), path)
    except OSError as error:
        raise EngineError(f"{path}: cannot be read ({error.strerror})") from error


def read_entry(content: bytes, where: Path) -> StoredEngine:
    """Read an entry's manifest; `EngineError` where it is none."""
    try:
        plain: dict[str, Any] = parse_json(content)
        if plain.pop("schema") != _SCHEMA:
            raise ValueError("another schema")
        entry = StoredEngine(**plain)
        files = {str(name): str(digest) for name, digest in entry.files.items()}
        is_whole = entry.kind in (ENGINE, KERNELS) and files and all(map(_PARTS.fullmatch, files))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise EngineError(f"{where}: the manifest cannot be read ({type(error).__name__})") from error
    if not is_whole or entry_id(files) != entry.engine_id:
        raise EngineError(f"{where}: the manifest does not name the files of an engine with this id")
    return entry


def entry_id(digests: Mapping[str, str]) -> str:
    """Return the id of an entry with these files."""
    listing = "".join(f"{name}={digest}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256(listing.encode()).hexdigest()[:16]


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file; of one that cannot be read, nothing that any file has."""
    try:
        return file_digest(path)
    except OSError:
        return ""


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out who kept the file and when."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member
