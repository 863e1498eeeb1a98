"""Which llama.cpp is measured: its libraries, its headers, and the build id that ties the two together."""

from __future__ import annotations

import hashlib
import importlib.util
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfsuite.errors import EngineError
from perfsuite.measure.engine_folders import include_folders, library_folder

#: The libraries whose structs and functions the native part uses; together they are the engine's identity.
ENGINE_LIBRARIES = ("libllama", "libggml", "libggml-base", "libggml-cpu")

_NOTE_GNU_BUILD_ID = 3
_SECTION_NOTE = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One build of llama.cpp on disk."""

    #: Directory that holds the shared libraries.
    library_dir: Path
    #: Directories that hold ``llama.h`` and ``ggml.h`` of the same build, which a checkout keeps apart.
    include_dirs: tuple[Path, ...]
    #: Sixteen hex digits over the build ids of `ENGINE_LIBRARIES`.
    build_id: str
    #: Whether it has a BLAS library, which has threads beside OpenMP's.
    has_blas: bool = False

    @property
    def is_packaged(self) -> bool:
        """Whether it is the one that llama-cpp-python brings."""
        try:
            return self.library_dir == _packaged_library_dir()
        except EngineError:
            return False

    @property
    def include_flags(self) -> tuple[str, ...]:
        """What a compiler is given to find its headers."""
        return tuple(f"-I{folder}" for folder in self.include_dirs)

    def to_plain(self) -> dict[str, Any]:
        """Return the fields by name."""
        folders = {"library_dir": str(self.library_dir), "include_dirs": [str(each) for each in self.include_dirs]}
        return {**folders, "build_id": self.build_id, "has_blas": self.has_blas}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Engine:
        """Undo `to_plain`; an older form has one folder of headers."""
        rest = {name: plain[name] for name in plain if name not in ("library_dir", "include_dir", "include_dirs")}
        includes = plain["include_dirs"] if "include_dirs" in plain else [plain["include_dir"]]
        return cls(library_dir=Path(plain["library_dir"]), include_dirs=tuple(map(Path, includes)), **rest)

    def library(self, name: str) -> Path:
        """Return the path of one library, by the name that a process maps (``.so.0`` before ``.so``)."""
        return _library(self.library_dir, name)


def find_engine(named: Path | None = None) -> Engine:
    """Find the llama.cpp that llama-cpp-python brings, or the one that is meant by a folder that a user names.

    Raises `EngineError` where no library or no header is found; the message says where it was looked for.
    """
    directory = _packaged_library_dir() if named is None else library_folder(named)
    return Engine(
        library_dir=directory,
        include_dirs=include_folders(directory),
        build_id=engine_build_id({name: _library(directory, name) for name in ENGINE_LIBRARIES}),
        has_blas=any(directory.glob("libggml-blas*")),
    )


def engine_build_id(libraries: dict[str, Path]) -> str:
    """Digest the build ids of the engine's libraries to sixteen hex digits."""
    digest = hashlib.sha256()
    for name in sorted(libraries):
        digest.update(f"{name}={library_build_id(libraries[name])}\n".encode())
    return digest.hexdigest()[:16]


def library_build_id(path: Path) -> str:
    """Return the GNU build id of a shared library, or a hash of its content where the linker wrote none."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise EngineError(f"{path}: cannot be read ({error.strerror}); reinstall llama-cpp-python") from error
    return _gnu_build_id(content) or hashlib.sha256(content).hexdigest()[:40]


def _packaged_library_dir() -> Path:
    spec = importlib.util.find_spec("llama_cpp")
    if spec is None or not spec.submodule_search_locations:
        raise EngineError("llama-cpp-python is not installed; run 'make env' or 'pip install llama-cpp-python'")
    return Path(next(iter(spec.submodule_search_locations))).resolve() / "lib"


def _library(directory: Path, name: str) -> Path:
    for candidate in (directory / f"{name}.so.0", directory / f"{name}.so"):
        if candidate.exists():
            return candidate
    by_processor = "; build it with -DGGML_BACKEND_DL=OFF" if any(directory.glob(f"{name}-*.so")) else ""
    raise EngineError(
        f"{directory}: {name}.so is not there{by_processor}; the folder must hold a whole build of llama.cpp"
    )


def _gnu_build_id(content: bytes) -> str | None:
    """Read the NT_GNU_BUILD_ID note of a little-endian 64-bit ELF file."""
    if len(content) < 64 or content[:6] != b"\x7fELF\x02\x01":
        return None
    (sections_at,) = struct.unpack_from("<Q", content, 40)
    entry_bytes, n_sections = struct.unpack_from("<HH", content, 58)
    for index in range(n_sections):
        at = sections_at + index * entry_bytes
        if at + 64 > len(content):
            return None
        (kind,), (offset, size) = struct.unpack_from("<I", content, at + 4), struct.unpack_from("<QQ", content, at + 24)
        if kind == _SECTION_NOTE and (found := _build_id_note(content[offset : offset + size])):
            return found
    return None


def _build_id_note(note: bytes) -> str | None:
    at = 0
    while at + 12 <= len(note):
        name_bytes, desc_bytes, kind = struct.unpack_from("<III", note, at)
        desc_at = at + 12 + (name_bytes + 3 & ~3)
        if kind == _NOTE_GNU_BUILD_ID and note[at + 12 : at + 15] == b"GNU":
            return note[desc_at : desc_at + desc_bytes].hex()
        at = desc_at + (desc_bytes + 3 & ~3)
    return None
