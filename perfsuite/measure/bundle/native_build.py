"""The suite's own native parts for a target: recorders and driver, probes, layers, and the worker."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from perfsuite.errors import NativeBuildError
from perfsuite.measure.bundle.compilers import Toolchain, cached_words, write_wrappers
from perfsuite.measure.bundle.steps import Tell
from perfsuite.measure.native import NativePart

#: Longest for one source.
_COMPILE_LIMIT_S = 600.0

_FLAGS = ("-O2", "-fPIC", "-Wall", "-pthread")


def build_parts(
    parts: Sequence[tuple[NativePart, Path]], toolchain: Toolchain, work: Path, log: Path, tell: Tell
) -> None:
    """Compile parts, each to its path, side by side; `work` takes what comes between.

    Raises `NativeBuildError` where one does not compile or link; the message has the line that says why, and the log.
    """
    sources = [(part, source) for part, _ in parts for source in part.sources]
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("")
    write_wrappers(toolchain, work)
    n_all = len(sources) + len(parts)
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        compiled = pool.map(lambda each: _compile(each[0], each[1], toolchain, work, log), sources)
        for n_done, _ in enumerate(compiled):
            tell("compiling the recorders and the worker", n_done + 1, n_all)
    for part, to in parts:
        _link(part, to, toolchain, work, log)


def build_starter(source: Path, to: Path, toolchain: Toolchain, log: Path) -> None:
    """Compile the program that needs no C library; raises as `build_parts`."""
    maps = f"-ffile-prefix-map={source.parent}=."
    _run([*toolchain.cc, "-std=gnu11", *_FLAGS, maps, "-static", str(source), *toolchain.links, "-o", str(to)], log)


def _compile(part: NativePart, source: Path, toolchain: Toolchain, work: Path, log: Path) -> None:
    words = (str(work / "cxx"), "-std=c++17") if source.suffix == ".cpp" else (str(work / "cc"), "-std=gnu11")
    includes = (f"-I{each}" for each in part.includes)
    maps = [f"-ffile-prefix-map={source.parent}=.", *(f"-ffile-prefix-map={each}=." for each in part.includes)]
    command = [*cached_words(toolchain), *words, *_FLAGS, *part.flags, *includes, *maps, "-c", str(source)]
    _run([*command, "-o", str(_object(part, source, work))], log, work)


def _object(part: NativePart, source: Path, work: Path) -> Path:
    return work / f"{part.name}-{source.parent.name}-{source.name}.o"


def _link(part: NativePart, to: Path, toolchain: Toolchain, work: Path, log: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    objects = [str(_object(part, source, work)) for source in part.sources]
    kind = ("-shared", f"-Wl,-soname,{part.name}") if part.is_library else toolchain.program_links
    _run([*toolchain.cxx, *kind, "-pthread", *objects, *part.links, *toolchain.links, "-o", str(to)], log)


def _run(command: Sequence[str], log: Path, folder: Path | None = None) -> None:
    try:
        done = subprocess.run(
            ["nice", "-n", "10", *command],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_COMPILE_LIMIT_S,
            cwd=folder,
        )
    except subprocess.TimeoutExpired as error:
        raise NativeBuildError(f"{command[-1]}: still compiling after {_COMPILE_LIMIT_S:.0f} s; see {log}") from error
    with log.open("a") as out:
        out.write(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if "error:" in line or "undefined reference" in line]
        lines = said or done.stderr.splitlines() or ["?"]
        raise NativeBuildError(f"{Path(command[-1]).name}: does not build: {lines[0].strip()[:200]}; see {log}")
