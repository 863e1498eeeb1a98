"""llama.cpp's libraries for a target, compiled once and kept in the cache by all that they are made of."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfsuite.device.work_folder import work_folder
from perfsuite.errors import NativeBuildError
from perfsuite.measure.bundle.compilers import Toolchain, cached_words, write_wrappers
from perfsuite.measure.bundle.elf import read_needs
from perfsuite.measure.bundle.llama_source import LlamaSource
from perfsuite.measure.bundle.steps import Tell, one_at_a_time, run_step
from perfsuite.measure.bundle.targets import NATIVE, BundleTarget, Processor
from perfsuite.measure.engine import ENGINE_LIBRARIES, OPENCL_BACKEND, Engine, engine_in
from perfsuite.measure.environment import environment_of_builds
from perfsuite.measure.native import source_root
from perfsuite.records.whole_file import place_folder

#: The folders of a kept build.
_LIBRARIES, _HEADERS = "lib", "include"

#: llama.cpp's libraries and nothing else, without what changes from one build to the next.
_SETTINGS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=ON",
    "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON",
    "-DCMAKE_INSTALL_RPATH=$ORIGIN",
    *(f"-DLLAMA_BUILD_{each}=OFF" for each in ("COMMON", "TESTS", "TOOLS", "EXAMPLES", "SERVER", "APP")),
    "-DLLAMA_BUILD_NUMBER=0",
    "-DLLAMA_BUILD_COMMIT=bundle",
    "-DLLAMA_OPENSSL=OFF",
    "-DGGML_CCACHE=OFF",
    "-DGGML_BACKEND_DL=OFF",
)
#: Says nothing of a commit: what is compiled is known by its content.
_NO_GIT = ("-DGIT_EXE=/bin/true", "-DGIT_EXECUTABLE=/bin/true")

_BACKEND_PROJECT = "opencl_backend/CMakeLists.txt"

#: What OpenCL's loader is called on a device; and what lets a library that has nothing yet be asked for all the same.
_OPENCL, _KEPT_LIBRARIES = "libOpenCL.so.1", "-Wl,--no-as-needed"

_CL_HEADERS = ("/usr/include", "/usr/local/include")


#: Another one where the same order is made in another way than before.
_RECIPE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOrder:
    """Which llama.cpp is compiled, for what, and by what."""

    source: LlamaSource
    target: BundleTarget
    processor: Processor
    toolchain: Toolchain

    @property
    def settings(self) -> tuple[str, ...]:
        """How llama.cpp is configured."""
        openmp = f"-DGGML_OPENMP={'ON' if self.toolchain.has_openmp else 'OFF'}"
        native = () if self.processor.name == NATIVE else ("-DGGML_NATIVE=OFF",)
        return (*_SETTINGS, openmp, *native, *self.processor.settings)

    @property
    def key(self) -> str:
        """Sixteen hex digits over all that a build is made of."""
        tools = self.toolchain
        made = (_RECIPE, self.source.digest, self.target.name, self.settings)
        read = environment_of_builds().items()
        parts = (*made, tools.version, tools.digest, tools.links, *(tools.march or ()), *read)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def build_engine(order: EngineOrder, cache_dir: Path, tell: Tell) -> Engine:
    """Return the libraries of an order, compiled first where the cache has none.

    Raises `NativeBuildError` where CMake is missing, or the sources do not configure or compile; the message has the
    line that says why, and the log.
    """

    def make(work: Path, made: Path, log: Path) -> None:
        build = work / "build"
        _compile(order, work, build, log, tell)
        _collect(order, build, made)

    folder = _kept(cache_dir, f"{order.target.name}-{order.key}", make, tell)
    return engine_in(folder / _LIBRARIES, (folder / _HEADERS,))


def build_opencl_backend(order: EngineOrder, engine: Engine, cache_dir: Path, tell: Tell) -> Path:
    """Return llama.cpp's OpenCL backend for an engine that was built by the same order; raises as `build_engine`."""

    def make(work: Path, made: Path, log: Path) -> None:
        _compile_backend(order, engine, work, log, tell)
        built = work / "backend" / OPENCL_BACKEND
        if _OPENCL not in (needed := read_needs(built).libraries):
            raise NativeBuildError(f"{built.name}: was linked with {', '.join(needed)}, and not with {_OPENCL}")
        _copy(built, made / OPENCL_BACKEND)

    project = (source_root(_BACKEND_PROJECT) / _BACKEND_PROJECT).read_bytes()
    key = hashlib.sha256(order.key.encode() + project + _KEPT_LIBRARIES.encode()).hexdigest()[:16]
    return _kept(cache_dir, f"{order.target.name}-opencl-{key}", make, tell) / OPENCL_BACKEND


def _kept(cache_dir: Path, name: str, make: Callable[[Path, Path, Path], None], tell: Tell) -> Path:
    """Return a folder of the cache, made first where it is not there, whole or not at all.

    `make` is given a folder to work in, one to fill, and the log.
    """
    folder = cache_dir / "cross" / name
    if folder.is_dir():
        return folder
    for tool in ("cmake", "ninja"):
        _tool(tool)  # before anybody is waited for
    with one_at_a_time(folder.with_name(f"{name}.lock"), tell):
        if not folder.is_dir():
            with work_folder(folder.parent) as work:
                (work / "made").mkdir()
                make(work, work / "made", cache_dir / "logs" / f"bundle-{name}.log")
                place_folder(work / "made", folder)
    return folder


def _compile(order: EngineOrder, work: Path, build: Path, log: Path, tell: Tell) -> None:
    what = f"{order.source.name} for {order.target.name} ({order.processor.name})"
    source = work / "source"  # whichever the sources are, they lie here, so that ccache knows their files again
    source.symlink_to(order.source.folder)
    command = [*_configure(order, work, source, build), *_cached_compiles(order), *order.settings, *_NO_GIT]
    run_step(f"configuring {what}", command, log, tell)
    log = log.with_suffix(".compile.log")
    run_step(f"compiling {what}", _nice(_tool("cmake"), "--build", str(build), "--target", "llama"), log, tell)


def _configure(order: EngineOrder, work: Path, source: Path, build: Path) -> list[str]:
    """Return the words that configure sources for the target, by compilers that CMake takes for one word."""
    write_wrappers(order.toolchain, work)
    # ccache names the sources from the build's folder; without it, the same files must come of them.
    maps = {order.source.folder: ".", source: ".", "../source": ".", build: "build"}
    flags = " ".join([*(f"-ffile-prefix-map={path}={name}" for path, name in maps.items()), *_without_amx(order)])
    links = " ".join(order.toolchain.links)
    return [
        *(_tool("cmake"), "-S", str(source), "-B", str(build), "-G", "Ninja"),
        f"-DCMAKE_MAKE_PROGRAM={_tool('ninja')}",
        "-DCMAKE_SYSTEM_NAME=Linux",
        f"-DCMAKE_SYSTEM_PROCESSOR={order.target.machines[0]}",
        f"-DCMAKE_C_COMPILER={work / 'cc'}",
        f"-DCMAKE_CXX_COMPILER={work / 'cxx'}",
        *(f"-DCMAKE_{language}_FLAGS={flags}" for language in ("C", "CXX")),
        *(f"-DCMAKE_{kind}_LINKER_FLAGS={links}" for kind in ("SHARED", "MODULE")),
    ]


def _cached_compiles(order: EngineOrder) -> tuple[str, ...]:
    launcher = ";".join(cached_words(order.toolchain))
    return tuple(f"-DCMAKE_{language}_COMPILER_LAUNCHER={launcher}" for language in ("C", "CXX") if launcher)


def _without_amx(order: EngineOrder) -> tuple[str, ...]:
    """Leave AMX out of what is compiled for this very machine: GCC 12.2 compiles its loading of tiles wrongly."""
    has_amx = order.processor.name == NATIVE and "amx_int8" in Path("/proc/cpuinfo").read_text()
    return ("-U__AMX_INT8__",) if has_amx else ()


def _collect(order: EngineOrder, build: Path, made: Path) -> None:
    """Copy libraries under the names that programs load, and headers."""
    for name in ENGINE_LIBRARIES:
        found = sorted(build.glob(f"bin/{name}.so.0")) or sorted(build.rglob(f"{name}.so.0"))
        found = found or sorted(build.rglob(f"{name}.so"))
        if not found:
            raise NativeBuildError(
                f"{order.source.name}: its build makes no {name}.so; shared libraries without GGML_BACKEND_DL are made"
            )
        _copy(found[0], made / _LIBRARIES / found[0].name)  # an older release gives it no number
    for library in order.toolchain.carried:
        _copy(library.resolve(), made / _LIBRARIES / library.name)
    for includes in (order.source.folder / "include", order.source.folder / "ggml" / "include"):
        for header in includes.glob("*.h"):
            _copy(header, made / _HEADERS / header.name)


def _copy(source: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, to)


def _compile_backend(order: EngineOrder, engine: Engine, work: Path, log: Path, tell: Tell) -> None:
    project, build = source_root(_BACKEND_PROJECT) / "opencl_backend", work / "backend"
    command = [
        *_configure(order, work, project, build),
        f"-DLLAMA_CPP_SOURCE={order.source.folder}",
        f"-DLLAMA_CPP_LIBRARY_DIR={engine.library_dir}",
        "-DGGML_OPENCL_PROFILING=OFF",
        f"-DOpenCL_INCLUDE_DIR={opencl_headers(work)}",
        f"-DOpenCL_LIBRARY={_empty_opencl(order, work, log, tell)}",
        f"-DCMAKE_MODULE_LINKER_FLAGS={' '.join((*order.toolchain.links, _KEPT_LIBRARIES))}",
        f"-DPython3_EXECUTABLE={sys.executable}",
        "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON",
        "-DCMAKE_INSTALL_RPATH=$ORIGIN/../engine",
    ]
    run_step("configuring the OpenCL backend", command, log, tell)
    log = log.with_suffix(".compile.log")
    run_step("compiling the OpenCL backend", _nice(_tool("cmake"), "--build", str(build)), log, tell)


def _empty_opencl(order: EngineOrder, work: Path, log: Path, tell: Tell) -> Path:
    """Make an OpenCL library with nothing in it, to link against: the device has its own."""
    source, library = work / "opencl.c", work / "libOpenCL.so"
    source.write_text("int perfsuite_no_opencl;\n")
    command = [*order.toolchain.cc, "-shared", f"-Wl,-soname,{_OPENCL}", str(source), "-o", str(library)]
    run_step("making a library to link OpenCL against", command, log.with_suffix(".link.log"), tell)
    return library


def opencl_headers(work: Path) -> Path:
    """Return a folder that has OpenCL's headers and no other of this system.

    Raises `NativeBuildError` where they are not installed.
    """
    folder = work / "opencl-headers"
    folder.mkdir(exist_ok=True)
    link = folder / "CL"
    if not link.is_symlink():
        link.symlink_to(find_opencl_headers() / "CL")
    return folder


def find_opencl_headers() -> Path:
    """Return the folder of this system that has them; raises as `opencl_headers`."""
    for place in map(Path, _CL_HEADERS):
        if (place / "CL" / "cl_layer.h").is_file():
            return place
    raise NativeBuildError(
        f"no CL/cl_layer.h in {' or '.join(_CL_HEADERS)}; install OpenCL's headers, Debian's opencl-headers"
    )


def _tool(name: str) -> str:
    """Return CMake or ninja: beside this Python, else on the PATH."""
    own = Path(sys.executable).parent / name
    path = str(own) if os.access(own, os.X_OK) else shutil.which(name)
    if path is None:
        raise NativeBuildError(f"no {name} on the PATH; install it, such as by 'pip install cmake ninja'")
    return path


def _nice(*words: str) -> Sequence[str]:
    return ["nice", "-n", "10", *words]
