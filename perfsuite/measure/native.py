"""The one place that builds and loads native code.

``libperfsuite_probe`` and ``perfsuite-worker`` know nothing of llama.cpp and come built in the wheel. The engine
library reads ggml's structs, so it is compiled against the headers of the llama.cpp that it will meet, kept in a cache
under that build's id, and refuses any other. The tracer of phases is compiled against the same headers, and never
loaded here: the loader of a worker brings it in.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from perfsuite import __version__
from perfsuite.device.work_folder import work_folder
from perfsuite.errors import EngineError, NativeBuildError
from perfsuite.measure.engine import ENGINE_LIBRARIES, Engine
from perfsuite.measure.plan import SCHEMA
from perfsuite.records.bundle import WORKER

_ERROR_BYTES = 2048

#: How the names of llama.cpp's libraries begin.
_ENGINE_NAMES = ("libllama", "libggml", "libmtmd")


def native_fields(*rows: tuple[Any, str]) -> tuple[tuple[str, Any], ...]:
    """Return the fields of a structure, in order: each row is a type and the names that have it."""
    return tuple((name, kind) for kind, names in rows for name in names.split())


def declare_functions(library: ctypes.CDLL, *rows: tuple[str, Any, tuple[Any, ...]]) -> None:
    """Say what functions return and take: each row is a name, the type that it returns, and those of its arguments."""
    for name, returned, taken in rows:
        function = getattr(library, name)
        function.restype, function.argtypes = returned, taken


def checked(function: Callable[..., int], *arguments: object, otherwise: str) -> None:
    """Call a function that takes room for its complaint last; `EngineError` with that, or else with `otherwise`."""
    error = ctypes.create_string_buffer(_ERROR_BYTES)
    if function(*arguments, error, ctypes.c_size_t(_ERROR_BYTES)) != 0:
        raise EngineError(error.value.decode(errors="replace") or otherwise)


PROBE_LIBRARY = "libperfsuite_probe.so"
ENGINE_LIBRARY = "libperfsuite_engine.so"
PHASE_TRACER_LIBRARY = "libperfsuite_phase_tracer.so"
TRACING_LAYER_LIBRARY = "libperfsuite_cl_layer.so"
COMPATIBILITY_LAYER_LIBRARY = "libperfsuite_cl_compat.so"

_COMPATIBILITY_SOURCE = "src/opencl/compat_layer.c"
_COMPILE_LIMIT_S = 300
_FLAGS = ("-O2", "-g", "-fPIC", "-Wall", "-pthread")


class Compilers(NamedTuple):
    """The names of compilers, of which the first that is installed is used."""

    c: tuple[str, ...]
    cxx: tuple[str, ...]


#: What compiles for this machine.
OWN_COMPILERS = Compilers(c=("cc", "gcc", "clang"), cxx=("c++", "g++", "clang++"))


def native_dirs() -> tuple[Path, ...]:
    """Return the folders that may hold the package's native files: a checkout's own first, then the installed one.

    An editable install keeps a copy of the sources that does not follow edits, so the checkout's come before it.
    """
    spec = importlib.util.find_spec("perfsuite")
    roots = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    roots.append(Path(__file__).resolve().parent.parent)
    installed = [root / "_native" for root in roots]
    source = [root.parent / "native" for root in roots]
    return tuple(dict.fromkeys(place for place in (*source, *installed) if place.is_dir()))


def _installed(name: str) -> Path | None:
    """Return what the wheel brings, where it was installed."""
    return next((place / name for place in native_dirs() if (place / name).exists()), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NativePart:
    """A library or a program of the suite's own: its sources, and what compiler and linker are given for it."""

    name: str
    sources: tuple[Path, ...]
    #: Folders of headers.
    includes: tuple[Path, ...]
    flags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    is_library: bool = True


def probe_part() -> NativePart:
    """Return the probe library: the sources of ``native/src`` itself, and the queue of live records."""
    root = source_root("src/threads.c")
    sources = (*sorted((root / "src").glob("*.c")), root / "src" / "engine" / "live.c")
    return NativePart(name=PROBE_LIBRARY, sources=sources, includes=(root / "include",), flags=("-O3",), links=("-lm",))


def engine_part(engine: Engine, found_at: Sequence[str]) -> NativePart:
    """Return recorder and driver, compiled against an engine's headers; `found_at` says where its libraries are."""
    root = source_root("src/engine/driver.cpp")
    libraries = tuple(str(engine.library(name)) for name in ENGINE_LIBRARIES)
    return NativePart(
        name=ENGINE_LIBRARY,
        sources=tuple(sorted((root / "src" / "engine").glob("*.c*"))),
        includes=(root / "include",),
        flags=(*engine.include_flags, *lacking_names(root / "src" / "engine", engine.include_dirs)),
        links=(*libraries, *found_at, f"-Wl,-rpath-link,{engine.library_dir}", "-ldl"),
    )


@cache  # each start of a worker asks for the flags of the library that it takes
def lacking_names(sources: Path, include_dirs: tuple[Path, ...]) -> tuple[str, ...]:
    """Return what a compiler is given of the names that a release of llama.cpp lacks: ``-DPS_LACKS_<NAME>``.

    The sources ask for a name by that; it is there where a header has it, in whatever case.
    """
    asked = {name for path in sources.iterdir() for name in re.findall(r"\bPS_LACKS_(\w+)", _text(path))}
    headers = (path for folder in include_dirs for path in sorted(folder.glob("*.h")))
    known = {name.upper() for path in headers for name in re.findall(r"\w+", _text(path))}
    return tuple(f"-DPS_LACKS_{name}" for name in sorted(asked - known))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def opencl_layer_part(name: str, root: Path) -> NativePart:
    """Return one of the layers for OpenCL's loader, from a folder of native files."""
    alone = root / _COMPATIBILITY_SOURCE
    sources = (path for path in sorted(alone.parent.glob("*.c")) if (path == alone) == (name != TRACING_LAYER_LIBRARY))
    return NativePart(
        name=name,
        sources=tuple(sources),
        includes=(root / "include",),
        flags=("-fvisibility=hidden", "-DCL_TARGET_OPENCL_VERSION=300"),
        links=("-Wl,-Bsymbolic,-z,nodelete,--build-id,--as-needed", "-ldl"),
    )


def worker_part() -> NativePart:
    """Return the worker and, where it is there, the agent that is the same program."""
    root = source_root("src/worker/main.cpp")
    return NativePart(
        name=WORKER,
        sources=(
            *(path for name in ("worker", "agent", "launcher") for path in sorted((root / "src" / name).glob("*.cpp"))),
            root / "src" / "engine" / "live.c",  # for the agent; the driver's own lies in the engine library
        ),
        includes=(root / "include",),
        flags=(f'-DPS_VERSION="{__version__}"', f"-DPS_PLAN_SCHEMA={SCHEMA}", "-Wno-maybe-uninitialized"),
        links=("-static-libstdc++", "-static-libgcc", "-ldl"),
        is_library=False,
    )


def load_probe_library(cache_dir: Path) -> ctypes.CDLL:
    """Load the probe library; see `find_probe_library`."""
    return _load(find_probe_library(cache_dir))


def find_probe_library(cache_dir: Path) -> Path:
    """Find the probe library in the wheel, or build it from the source tree where it was never installed."""
    return _installed(PROBE_LIBRARY) or build_probe_library(cache_dir)


def find_worker(cache_dir: Path) -> Path:
    """Find the native worker in the wheel, or build it from the source tree where it was never installed."""
    return _installed(WORKER) or build_worker(cache_dir)


def build_worker(cache_dir: Path) -> Path:
    """Compile the native worker, which also serves a desk, into the cache; it needs no more than the C library."""
    return _build(worker_part(), cache_dir, identity=WORKER)


def build_probe_library(cache_dir: Path) -> Path:
    """Compile the probe library from ``native/src`` into the cache."""
    return _build(probe_part(), cache_dir, identity="probe")


def load_engine_library(engine: Engine, cache_dir: Path) -> ctypes.CDLL:
    """Load the engine library of exactly this build of llama.cpp, building it first where the cache has none.

    Raises `EngineError` where another build of llama.cpp is already mapped into this process.
    """
    library = _load(build_engine_library(engine, cache_dir), mode=ctypes.RTLD_GLOBAL)
    refuse_other_engine(engine, Path("/proc/self/maps").read_text())
    return library


def refuse_other_engine(engine: Engine, maps: str) -> None:
    """Raise unless the llama.cpp libraries in `maps` (the text of ``/proc/PID/maps``) are the files of `engine`.

    Libraries that the folder has count, whose RUNPATH may lead elsewhere; their build ids alone may be those of a copy.
    """
    paths = sorted({Path(line.split(maxsplit=5)[-1]) for line in maps.splitlines() if ".so" in line})
    mapped = {path: name for path in paths if (name := path.name.split(".so")[0]).startswith(_ENGINE_NAMES)}
    for path, name in mapped.items():
        own = list(engine.library_dir.glob(f"{name}.so*"))
        if own and not any(_is_same_file(path, each) for each in own):
            raise EngineError(
                f"{engine.library_dir}: {name}.so was loaded from {path}, not from there; RUNPATH or LD_LIBRARY_PATH "
                "leads elsewhere: run \"patchelf --set-rpath '$ORIGIN'\" on the folder's libraries, or name the folder "
                "that they were built in"
            )
    if lacking := [name for name in ENGINE_LIBRARIES if name not in mapped.values()]:
        raise EngineError(
            f"{engine.library_dir}: the process maps no {', '.join(lacking)} of build {engine.build_id}; run again"
        )


def _is_same_file(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except OSError:
        return False


def build_engine_library(engine: Engine, cache_dir: Path) -> Path:
    """Compile recorder and driver against the engine's headers into the cache; return the library's path."""
    part = engine_part(engine, (f"-Wl,--disable-new-dtags,-rpath,{engine.library_dir}",))
    return _build(part, cache_dir, identity=f"{engine.build_id} {engine.library_dir}")


def phase_tracer_part(engine: Engine) -> NativePart:
    """Return the interposed tracer of phases, compiled against an engine's headers; it is for LD_PRELOAD."""
    root = source_root("src/tracer/phase_tracer.c")
    return NativePart(
        name=PHASE_TRACER_LIBRARY,
        sources=(root / "src" / "tracer" / "phase_tracer.c",),
        includes=(root / "include",),
        flags=engine.include_flags,
        links=("-ldl",),
    )


def build_phase_tracer(engine: Engine, cache_dir: Path) -> Path:
    """Compile the tracer of an engine's phases into the cache."""
    return _build(phase_tracer_part(engine), cache_dir, identity=f"phase tracer {engine.build_id}")


def find_opencl_layer(name: str, cache_dir: Path) -> Path:
    """Find one of the layers for OpenCL's loader among the native files, or build it from its source into the cache.

    Raises `NativeBuildError` where it does not build; the text says where OpenCL's headers are missing.
    """
    for place in native_dirs():
        if (place / name).exists():
            return place / name
        if (place / _COMPATIBILITY_SOURCE).exists():
            return _build_opencl_layer(name, place, cache_dir)
    raise NativeBuildError(f"native source {_COMPATIBILITY_SOURCE} is not installed with perfsuite; reinstall it")


def _build_opencl_layer(name: str, root: Path, cache_dir: Path) -> Path:
    try:
        return _build(opencl_layer_part(name, root), cache_dir, identity=name)
    except NativeBuildError:
        if has_header("CL/cl_layer.h"):
            raise
        raise NativeBuildError(f"{name}: no CL/cl_layer.h; install OpenCL's headers, Debian's opencl-headers") from None


def has_header(header: str) -> bool:
    """Tell whether the C compiler finds a header."""
    command = [_compiler(*OWN_COMPILERS.c), "-E", "-x", "c", "-", "-o", os.devnull]
    text = f"#include <{header}>\n"
    return subprocess.run(command, input=text, text=True, capture_output=True, timeout=60).returncode == 0


def _build(part: NativePart, cache_dir: Path, *, identity: str) -> Path:
    """Compile a library from native files."""
    return build_program(
        part.name,
        part.sources,
        part.includes[0],
        cache_dir,
        extra=part.flags,
        links=part.links,
        identity=identity,
        is_library=part.is_library,
    )


def source_root(needed: str) -> Path:
    """Return the folder of native files that holds one of the sources; `NativeBuildError` where none does."""
    for place in native_dirs():
        if (place / needed).exists():
            return place
    raise NativeBuildError(f"native source {needed} is not installed with perfsuite; reinstall the package")


def build_program(
    name: str,
    sources: Sequence[Path],
    include: Path,
    cache_dir: Path,
    *,
    extra: Sequence[str],
    links: Sequence[str],
    identity: str,
    is_library: bool = False,
    compilers: Compilers = OWN_COMPILERS,
) -> Path:
    """Compile a program, or a library, into the cache; one with the same sources and identity is kept."""
    headers = sorted({*include.rglob("*.h"), *(header for source in sources for header in source.parent.glob("*.h"))})
    digest = hashlib.sha256(repr((identity, extra, links, _FLAGS, compilers)).encode())
    for source in (*sources, *headers):
        digest.update(source.read_bytes())
    target = cache_dir / "native" / f"{Path(name).stem}-{digest.hexdigest()[:16]}" / name
    if not target.exists():
        kind = ("-shared",) if is_library else ()
        _compile(target, sources, (*_FLAGS, *extra, f"-I{include}"), kind, links, compilers)
    return target


def _compile(
    target: Path,
    sources: Sequence[Path],
    flags: Sequence[str],
    kind: Sequence[str],
    links: Sequence[str],
    compilers: Compilers,
) -> None:
    cc, cxx = _compiler(*compilers.c), _compiler(*compilers.cxx)

    def make(work: Path, log: Path) -> None:
        objects = []
        for source in sources:
            made = work / f"{source.name}.o"
            standard = (cxx, "-std=c++17") if source.suffix == ".cpp" else (cc, "-std=gnu11")
            run_step([*standard, *flags, "-c", str(source), "-o", str(made)], log)
            objects.append(str(made))
        run_step([cxx, *kind, "-pthread", *objects, *links, "-o", str(work / target.name)], log)

    make_whole(target, make)


def make_whole(target: Path, make: Callable[[Path, Path], None]) -> None:
    """Have a file made in a folder beside its own, and move it into place whole, so that two runs cannot mix.

    `make` gets that folder, in which it leaves a file of the target's name, and the log of what it runs.

    Raises `NativeBuildError` where there is no room for it, or `make` failed.
    """
    within, log = target.parent.parent, target.parent.parent / f"{target.parent.name}.log"
    with ExitStack() as made:
        try:
            within.mkdir(parents=True, exist_ok=True)
            work = made.enter_context(work_folder(within))
        except OSError as error:
            raise NativeBuildError(f"{within}: cannot be written ({error.strerror})") from error
        log.write_text("")
        make(work, log)
        target.parent.mkdir(exist_ok=True)
        os.replace(work / target.name, target)


def _compiler(*names: str) -> str:
    for name in names:
        if found := shutil.which(name):
            return found
    raise NativeBuildError(f"no compiler ({', '.join(names)}) on the PATH; install one, such as Debian's g++")


def run_step(command: Sequence[str], log: Path) -> None:
    """Run one command of a build, with what it says in the log.

    Raises `NativeBuildError` where it fails, or does not end within five minutes.
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_COMPILE_LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise NativeBuildError(f"{command[0]}: still running after {_COMPILE_LIMIT_S} s; see {log}") from error
    with log.open("a") as out:
        out.write(" ".join(command) + "\n" + done.stdout + done.stderr)
    if done.returncode:
        raise NativeBuildError(
            f"{Path(command[-1]).name}: does not build ({command[0]} returned {done.returncode}); see {log}"
        )


def _load(path: Path, mode: int = ctypes.DEFAULT_MODE) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path), mode=mode)
    except OSError as error:
        raise NativeBuildError(f"{path}: cannot be loaded ({error})") from error
