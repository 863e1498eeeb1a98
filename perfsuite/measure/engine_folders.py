"""Where the libraries and the headers of a llama.cpp lie, in or near the folder that somebody names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

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
        raise EngineError(f"{folder}: is no folder; expected {_ACCEPTED}")
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
    """Return the folders that hold the headers of the llama.cpp whose libraries lie in `library_dir`.

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
