"""Making a bundle, and keeping it by the content of all that it is made of."""

from __future__ import annotations

import hashlib
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from perfsuite import __version__
from perfsuite.device.work_folder import replace_folder, sweep_once, work_folder
from perfsuite.errors import NativeBuildError, PerfsuiteError
from perfsuite.measure.bundle.compilers import Toolchain, find_toolchain
from perfsuite.measure.bundle.elf import SYSTEM, ElfNeeds, read_needs
from perfsuite.measure.bundle.engine_build import (
    EngineOrder,
    build_engine,
    build_opencl_backend,
    find_opencl_headers,
    opencl_headers,
)
from perfsuite.measure.bundle.llama_source import find_llama
from perfsuite.measure.bundle.native_build import build_parts, build_starter
from perfsuite.measure.bundle.steps import Tell, one_at_a_time
from perfsuite.measure.bundle.targets import BundleTarget, Processor
from perfsuite.measure.debian_packages import MUSL, unpacked
from perfsuite.measure.ebpf_helper import CARRIED, HELPER_NAME, build_helper, build_obstacle
from perfsuite.measure.engine import Engine, engine_in
from perfsuite.measure.native import (
    COMPATIBILITY_LAYER_LIBRARY,
    TRACING_LAYER_LIBRARY,
    NativePart,
    engine_part,
    opencl_layer_part,
    phase_tracer_part,
    probe_part,
    source_root,
    worker_part,
)
from perfsuite.measure.plan import SCHEMA
from perfsuite.records.bundle import (
    ENGINE,
    LAYERS,
    LIBRARIES,
    LOADER,
    MANIFEST_NAME,
    WORKER,
    BundledEngine,
    BundleManifest,
    check_bundle,
    content_digest,
    listed_files,
    read_manifest,
    write_manifest,
)
from perfsuite.records.whole_file import make_folder, place_folder
from perfsuite.units import format_bytes

#: Most that a bundle may take on a device.
MOST_BYTES = 40_000_000

#: The source of what starts the worker by a C library of the bundle's own.
_STARTER = "src/starter/starter.c"

#: Where the libraries of llama.cpp are, seen from ``lib/``.
_FOUND_AT = ("-Wl,--disable-new-dtags,-rpath,$ORIGIN/../engine",)


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleOrder:
    """What a bundle must be made of, and for what."""

    target: BundleTarget
    processor: Processor
    #: ``gcc`` or ``zig``.
    compiler: str = "gcc"
    #: A release of llama-cpp-python or a checkout; None for the release that the suite requires.
    llama: str | None = None
    #: Whether it has llama.cpp's OpenCL backend.
    has_opencl: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A bundle in a folder here."""

    folder: Path
    manifest: BundleManifest


def make_bundle(order: BundleOrder, cache_dir: Path, tell: Tell) -> Bundle:
    """Return the bundle of an order, from the cache where all that it is made of is as it was.

    Raises PerfsuiteError: a compiler or a source is missing, or something does not compile; nothing half made stays.
    """
    toolchain = find_toolchain(order.compiler, order.target, order.processor)
    libc = None if order.target.has_glibc else _musl(order.target, cache_dir, tell)
    source = find_llama(order.llama, cache_dir, tell)
    engine_order = EngineOrder(source=source, target=order.target, processor=order.processor, toolchain=toolchain)
    name = f"{order.target.name}-{_key(order, engine_order, libc)}"
    folder = cache_dir / "bundles" / name
    with _cache_errors(folder.parent), one_at_a_time(folder.with_name(f"{name}.lock"), tell):
        for each in ("bundles", "cross"):
            sweep_once(str(cache_dir / each))
        if folder.is_dir():
            try:
                return Bundle(folder=folder, manifest=check_bundle(folder))
            except PerfsuiteError:
                replace_folder(None, folder)
        find_opencl_headers()  # what is missing is said before llama.cpp is compiled for minutes
        engine = build_engine(engine_order, cache_dir, tell)
        with work_folder(folder.parent) as work:
            draft = work / "bundle"
            draft.mkdir()
            _fill(draft, order, engine_order, engine, libc, cache_dir, tell)
            _describe(draft, order, engine_order, engine)
            place_folder(draft, folder)
    return Bundle(folder=folder, manifest=read_manifest(folder))


def _musl(target: BundleTarget, cache_dir: Path, tell: Tell) -> Path:
    """Return musl for a target: zig has what links against it, and not the library itself.

    It is one build for everybody: with musl 1.2.6 in place of 1.2.3, RoPE and RMS norm take other instructions.
    """
    machine = target.machines[0]
    return unpacked(MUSL[machine], cache_dir, tell) / "lib" / f"{machine}-linux-musl" / "libc.so"


def copy_bundle(bundle: Bundle, to: Path) -> None:
    """Copy a bundle to a folder, whole or not at all; another bundle there is replaced.

    Raises PerfsuiteError: it cannot be written, or something else is there.
    """
    refuse_other_folder(to)
    with _cache_errors(to.parent), work_folder(to.absolute().parent) as work:
        shutil.copytree(bundle.folder, work / "bundle")
        replace_folder(work / "bundle", to.absolute())


def refuse_other_folder(to: Path) -> None:
    """Raise the `NativeBuildError` of a place for a bundle where something else is."""
    if to.exists() and not (to / MANIFEST_NAME).is_file() and (not to.is_dir() or any(to.iterdir())):
        raise NativeBuildError(f"{to}: already exists, and is not a bundle; name another folder with -o")


def _key(order: BundleOrder, engine_order: EngineOrder, libc: Path | None) -> str:
    """Return sixteen hex digits over all that a bundle is made of."""
    brings = (order.has_opencl, _brings_helper(order))
    digest = hashlib.sha256(repr((engine_order.key, __version__, SCHEMA, brings)).encode())
    if libc is not None:
        digest.update(libc.read_bytes())
    root = source_root("src/threads.c")
    for folder in ("src", "include", "opencl_backend", "bpf"):
        for path in sorted(each for each in (root / folder).rglob("*") if each.is_file()):
            digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _fill(
    draft: Path,
    order: BundleOrder,
    engine_order: EngineOrder,
    engine: Engine,
    libc: Path | None,
    cache_dir: Path,
    tell: Tell,
) -> None:
    for path in engine.library_dir.iterdir():
        _place(path, draft / ENGINE / path.name)
    if order.has_opencl:
        backend = build_opencl_backend(engine_order, engine, cache_dir, tell)
        _place(backend, draft / LIBRARIES / backend.name)
    log = cache_dir / "logs" / f"bundle-{order.target.name}-native.log"
    work = draft.with_name("objects")
    work.mkdir()
    build_parts(tuple(_parts(draft, engine, work)), engine_order.toolchain, work, log, tell)
    if _brings_helper(order):
        _place(build_helper(cache_dir, CARRIED), draft / HELPER_NAME)
    if libc is not None:
        _start_by(libc, draft, engine_order.toolchain, log)
    programs = {draft / name for name in _programs(draft)}
    for path in (each for each in draft.rglob("*") if each.is_file()):
        path.chmod(0o755 if path in programs else 0o644)


def _brings_helper(order: BundleOrder) -> bool:
    """Whether the eBPF recorder goes along: its programs are compiled against the types of this kernel."""
    is_like_here = order.compiler == "gcc" and order.target.has_glibc and platform.machine() in order.target.machines
    return is_like_here and build_obstacle(CARRIED) is None


def _start_by(libc: Path, draft: Path, toolchain: Toolchain, log: Path) -> None:
    """Let the worker be started by a C library that comes along, for a device that has another one, or none."""
    _place(libc, draft / LOADER)
    (draft / WORKER).rename(draft / LIBRARIES / WORKER)
    build_starter(source_root(_STARTER) / _STARTER, draft / WORKER, toolchain, log)


def _programs(draft: Path) -> tuple[str, ...]:
    """Return what of a bundle is run, and not loaded."""
    return tuple(name for name in (WORKER, LOADER, HELPER_NAME) if (draft / name).is_file())


def _parts(draft: Path, engine: Engine, work: Path) -> Iterator[tuple[NativePart, Path]]:
    own = work / "engine-headers"  # whichever the engine is, they lie here, so that ccache knows what includes them
    own.symlink_to(engine.include_dirs[0])
    engine = replace(engine, include_dirs=(own,))
    for part in (engine_part(engine, _FOUND_AT), probe_part(), phase_tracer_part(engine)):
        yield part, draft / LIBRARIES / part.name
    root, headers = source_root("src/opencl/layer.c"), opencl_headers(work)
    for name in (TRACING_LAYER_LIBRARY, COMPATIBILITY_LAYER_LIBRARY):
        part = opencl_layer_part(name, root)
        yield replace(part, includes=(*part.includes, headers)), draft / LAYERS / name
    yield worker_part(), draft / WORKER


def _place(source: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, to)


def _describe(draft: Path, order: BundleOrder, engine_order: EngineOrder, engine: Engine) -> None:
    """Write the manifest, once the files have shown that they suit the target and need nothing else."""
    files = listed_files(draft, _programs(draft))
    least = _least_glibc({each.path: read_needs(draft / each.path) for each in files}, order.target)
    assert engine_in(draft / ENGINE, ()).build_id == engine.build_id
    manifest = BundleManifest(
        suite_version=__version__,
        plan_schema=SCHEMA,
        digest=content_digest(files),
        target=order.target.name,
        machines=order.target.machines,
        processor=order.processor.name,
        compiler=engine_order.toolchain.version,
        flags=_shown_flags(engine_order.toolchain),
        settings=engine_order.settings,
        llama=engine_order.source.name,
        llama_digest=engine_order.source.digest,
        engine=BundledEngine(library_dir=ENGINE, include_dirs=(), build_id=engine.build_id, has_blas=engine.has_blas),
        least_glibc=least,
        files=files,
    )
    if manifest.size_bytes > MOST_BYTES:
        raise NativeBuildError(
            f"the bundle for {order.target.name} has {format_bytes(manifest.size_bytes)}, "
            f"{format_bytes(MOST_BYTES)} is the most; look what the checkout adds to llama.cpp's libraries"
        )
    write_manifest(draft, manifest)


def _shown_flags(toolchain: Toolchain) -> tuple[str, ...]:
    return toolchain.links


def _least_glibc(needs: dict[str, ElfNeeds], target: BundleTarget) -> str | None:
    """Return the oldest glibc that has all that these files need.

    Raises `NativeBuildError`: one is for another machine, or needs a library that is neither here nor the system's.
    """
    here = {Path(name).name for name in needs}
    for name, each in needs.items():
        if each.machine != target.elf:
            bits, machine = each.machine
            raise NativeBuildError(f"{name}: is for machine {machine} of {bits} bits, expected {target.name}")
        lacking = [library for library in each.libraries if library not in here and not library.startswith(SYSTEM)]
        if lacking:
            raise NativeBuildError(
                f"{name}: needs {lacking[0]}, which is not in the bundle; build llama.cpp without what brings it"
            )
    found = [each.least_glibc for each in needs.values() if each.least_glibc is not None]
    return ".".join(map(str, max(found))) if found else None


@contextmanager
def _cache_errors(folder: Path) -> Iterator[None]:
    try:
        make_folder(folder)
        yield
    except OSError as error:
        named = error.filename or folder
        raise NativeBuildError(
            f"{named}: cannot be written ({error.strerror or error}); make room or name another place"
        ) from error
