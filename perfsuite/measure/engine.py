"""Which llama.cpp is measured: its libraries, its headers, and the build id that ties the two together."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfsuite.errors import EngineError

#: The library by which a folder of libraries is known.
_LIBRARY = "libllama.so"

#: The headers that native code is compiled against.
_HEADERS = ("llama.h", "ggml.h")

#: Where a build or an install prefix has its libraries: CMake's build tree in ``bin``, Debian by architecture.
_LIBRARY_FOLDERS = ("", "bin", "lib", "lib64", "lib/*-linux-gnu*")

#: What a build without shared libraries leaves, and where.
_STATIC = ("libllama.a", "src/libllama.a", "lib/libllama.a", "lib64/libllama.a", "llama-cli", "bin/llama-cli")

#: How far above its libraries a build's own folder is looked for.
_N_ABOVE = 3

#: What CMake's cache calls the checkout: where llama.cpp is a part of another project, and where it is the project.
_SOURCE = r"^{}:\w+=(.+)$"
_SOURCE_NAMES = ("llama.cpp_SOURCE_DIR", "CMAKE_HOME_DIRECTORY")

_ACCEPTED = "a checkout of llama.cpp that was built, a CMake build folder, an install prefix, or a folder of libraries"
_BUILD = "cmake -B build -DBUILD_SHARED_LIBS=ON && cmake --build build"


def library_folder(named: Path) -> Path:
    """Return the folder of shared libraries that is meant by a checkout, a build, a prefix, or the folder itself.

    Raises `EngineError` where there is none, or a checkout has several builds.
    """
    folder = Path(os.path.expanduser(named)).resolve()  # no shell expands the ~ of --against=~/llama.cpp
    if not folder.is_dir():
        raise EngineError(f"{folder}: is not a folder; expected {_ACCEPTED}")
    if found := _libraries_in(folder):
        return found
    builds = {libraries: each.name for each in _builds(folder) if (libraries := _libraries_in(each))}
    if len(builds) > 1:
        names = ", ".join(sorted(builds.values()))
        raise EngineError(f"{folder}: has several builds ({names}); name one, such as {folder / min(builds.values())}")
    if not builds:
        raise EngineError(_why_none(folder))
    return next(iter(builds))


def include_folders(library_dir: Path) -> tuple[Path, ...]:
    """Return the folders that hold the headers of the llama.cpp whose libraries are in `library_dir`.

    Raises `EngineError` where none near it do, nor the checkout that the build's ``CMakeCache.txt`` names.
    """
    near = (library_dir, *library_dir.parents[:_N_ABOVE])
    looked = tuple(dict.fromkeys((*_checkouts(near), *near)))
    for folder in looked:
        for includes in ((folder / "include",), (folder / "include", folder / "ggml" / "include")):
            if all(any((include / header).is_file() for include in includes) for header in _HEADERS):
                return includes
    raise EngineError(
        f"{library_dir}: no {' and '.join(_HEADERS)} of this build, neither in include/ nor in ggml/include/ of "
        f"{', '.join(map(str, looked))}; keep the checkout that it was built from, or 'cmake --install' it to a prefix"
    )


def _libraries_in(folder: Path) -> Path | None:
    patterns = (Path(name) / f"{_LIBRARY}*" for name in _LIBRARY_FOLDERS)
    found = (path.parent for pattern in patterns for path in folder.glob(str(pattern)))
    return next((place.resolve() for place in found), None)


def _builds(checkout: Path) -> list[Path]:
    return sorted(path for path in checkout.glob("build*") if path.is_dir())


def _why_none(folder: Path) -> str:
    builds = _builds(folder)
    for place in (folder, *builds):
        if static := next((place / name for name in _STATIC if (place / name).exists()), None):
            return f"{place}: is a static build ({static}); shared libraries are measured, which {_BUILD!r} makes"
    if not builds and (folder / "include" / "llama.h").is_file() and (folder / "CMakeLists.txt").is_file():
        return f"{folder}: is a checkout that was not built; run {_BUILD!r} there"
    return (
        f"{folder}: {_LIBRARY} is not there, nor in its bin/, lib/ or lib64/, nor in those of a build*/ in it; "
        f"expected {_ACCEPTED}"
    )


def _checkouts(folders: tuple[Path, ...]) -> Iterator[Path]:
    """Yield the checkouts that the CMake caches in these folders name."""
    for folder in folders:
        with suppress(OSError):
            cache = (folder / "CMakeCache.txt").read_text(errors="surrogateescape")
            found = (re.search(_SOURCE.format(re.escape(name)), cache, re.MULTILINE) for name in _SOURCE_NAMES)
            yield from (Path(each[1]) for each in found if each)


#: The libraries whose structs and functions the native part uses; together they are the engine's identity.
ENGINE_LIBRARIES = ("libllama", "libggml", "libggml-base", "libggml-cpu")

#: Its OpenCL backend, where that is a library of its own.
OPENCL_BACKEND = "libggml-opencl.so"

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
    return engine_in(directory, include_folders(directory))


def engine_in(library_dir: Path, include_dirs: tuple[Path, ...]) -> Engine:
    """Return the llama.cpp whose libraries are in a folder; raises `EngineError` where one is missing."""
    return Engine(
        library_dir=library_dir,
        include_dirs=include_dirs,
        build_id=engine_build_id({name: _library(library_dir, name) for name in ENGINE_LIBRARIES}),
        has_blas=any(library_dir.glob("libggml-blas*")),
    )


#: What a struct or a function of a header looks like without comments.
_DECLARATION = re.compile(r"\bstruct\s+(\w+)\s*\{[^}]*\}|\bLLAMA_API\b[^;(]*?(\w+)\s*\([^;]*?\)(?=\s*[;,])")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def other_declaration(old: Engine, new: Engine) -> str | None:
    """Name a struct or function that the ``llama.h`` of both has and that differs, so that no program fits both."""
    before, now = map(_declarations, (old, new))
    return next((name for name, text in now.items() if before.get(name, text) != text), None)


def _declarations(engine: Engine) -> dict[str, str]:
    header = next(path for folder in engine.include_dirs if (path := folder / "llama.h").is_file())
    text = _COMMENT.sub("", header.read_text(errors="replace"))
    return {found[1] or found[2]: "".join(found[0].split()) for found in _DECLARATION.finditer(text)}


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
    folder = Path(next(iter(spec.submodule_search_locations))).resolve() / "lib"
    if not folder.is_dir():
        raise EngineError(
            f"{folder}: llama-cpp-python was installed without its llama.cpp; run 'make env', or name a build of yours "
            "by LLAMA_CPP_LIB_PATH"
        )
    return folder


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
