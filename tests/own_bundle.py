"""A bundle of what is built for this machine already: its own worker, and the llama.cpp of its environment."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

from perfsuite import __version__
from perfsuite.measure.engine import Engine, find_engine
from perfsuite.measure.native import build_program, engine_part, find_probe_library, find_worker
from perfsuite.measure.plan import SCHEMA
from perfsuite.records.bundle import WORKER, BundledEngine, BundleManifest, content_digest, listed_files, write_manifest


def own_engine(folder: Path) -> Engine:
    """Return this machine's llama.cpp as one that was made for a bundle, which has all that its libraries need."""
    engine = find_engine()
    folder.mkdir()
    for name in ("llama", "ggml", "ggml-base", "ggml-cpu"):
        shutil.copyfile(engine.library_dir / f"lib{name}.so.0", folder / f"lib{name}.so.0")
    known = subprocess.run(["ldd", folder / "libggml-base.so.0"], capture_output=True, text=True, check=True).stdout
    for line in (each.split() for each in known.splitlines()):
        if line[0].startswith(("libgomp", "libstdc++", "libgcc_s")):
            shutil.copyfile(line[2], folder / line[0])
    return replace(engine, library_dir=folder)


def own_libraries(cache_dir: Path) -> tuple[Path, Path]:
    """Return the suite's libraries for this machine's llama.cpp, which find that as in a bundle."""
    engine = find_engine()
    part = engine_part(engine, ("-Wl,--disable-new-dtags,-rpath,$ORIGIN/../engine",))
    built = build_program(
        part.name,
        part.sources,
        part.includes[0],
        cache_dir,
        extra=part.flags,
        links=part.links,
        identity=f"bundled {engine.build_id}",
        is_library=True,
    )
    return built, find_probe_library(cache_dir)


def make_own_bundle(folder: Path, cache_dir: Path) -> Path:
    (folder / "lib").mkdir(parents=True)
    engine = own_engine(folder / "engine")
    shutil.copy(find_worker(cache_dir), folder / WORKER)
    for library in own_libraries(cache_dir):
        shutil.copy(library, folder / "lib" / library.name)
    files = listed_files(folder, (WORKER,))
    manifest = BundleManifest(
        suite_version=__version__,
        plan_schema=SCHEMA,
        digest=content_digest(files),
        target="own",
        machines=(os.uname().machine,),
        processor="any",
        compiler="none",
        flags=(),
        settings=(),
        llama="none",
        llama_digest="0",
        engine=BundledEngine(library_dir="engine", include_dirs=(), build_id=engine.build_id, has_blas=engine.has_blas),
        least_glibc=None,
        files=files,
    )
    write_manifest(folder, manifest)
    return folder
