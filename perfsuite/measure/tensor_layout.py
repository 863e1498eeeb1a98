"""Where the fields of ggml's tensor are in one build of llama.cpp: asked of its own headers, and kept in the cache."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from perfsuite.errors import EngineError, NativeBuildError
from perfsuite.measure.engine import Engine, library_build_id
from perfsuite.measure.engine_process import mapped_files
from perfsuite.measure.native import build_program, lacking_names, source_root
from perfsuite.records.tensor_layout import TensorLayout
from perfsuite.records.whole_file import write_whole_bytes

#: The library whose structs they are.
LAYOUT_LIBRARY = "libggml-base"

#: The program, and what the engine library of a board has of it.
_SOURCE = "bpf/layout/write_layout.c"
_SOURCES = (_SOURCE, "src/engine/tensor_layout.c")
_RELEASES = "src/engine/release.h"
_HEADER = "ggml.h"
_LIMIT_S = 60
#: What the kernel puts behind the path of a mapped file that is no longer there.
_DELETED = " (deleted)"


def tensor_layout(engine: Engine, cache_dir: Path) -> TensorLayout:
    """Return the layout of the tensors of one build of llama.cpp; raises as `layout_of` does."""
    return layout_of(engine.include_dirs, engine.library(LAYOUT_LIBRARY), cache_dir)


def layout_of(include_dirs: Sequence[Path], library: Path, cache_dir: Path) -> TensorLayout:
    """Return the layout that the headers in `include_dirs` have; `library` is the libggml-base of the same build.

    Raises `NativeBuildError` where there are no such headers, or they do not go with the library; `EngineError` where
    there is no such library.
    """
    header = next((each / _HEADER for each in include_dirs if (each / _HEADER).is_file()), None)
    if header is None:
        where = ", ".join(map(str, include_dirs))
        raise NativeBuildError(
            f"{where}: {_HEADER} is not there; name its folder of the llama.cpp that is recorded, such as ggml/include"
        )
    build_id = library_build_id(library)
    sources = (source_root(_SOURCE) / each for each in (*_SOURCES, _RELEASES))
    digest = hashlib.sha256(header.read_bytes() + b"".join(each.read_bytes() for each in sources)).hexdigest()[:16]
    kept = cache_dir / "native" / f"tensor-layout-{build_id[:16]}-{digest}.json"
    if not kept.exists():
        write_whole_bytes(kept, _ask(header.parent, library, cache_dir).encode(), NativeBuildError)
    return _parse(kept, build_id)


def refuse_other_layout(layout: TensorLayout, pid: int) -> None:
    """Raise unless the process maps the very libggml-base that the layout is of.

    Raises `EngineError` where it maps none, or another.
    """
    mapped = _mapped_libraries(pid)
    for path in mapped:
        build_id = library_build_id(Path(f"/proc/{pid}/root{path}"))
        if build_id != layout.build_id:
            raise EngineError(
                f"process {pid}: {path} is build {build_id[:16]}, the tensor's layout is of {layout.build_id[:16]} "
                f"(ggml {layout.version}); name the headers of that build with --ggml-include DIR"
            )


def mapped_layout_library(pid: int) -> Path:
    """Return the libggml-base that a process maps, as this process can open it; `EngineError` where it maps none."""
    return Path(f"/proc/{pid}/root{_mapped_libraries(pid)[0]}")


def _mapped_libraries(pid: int) -> tuple[Path, ...]:
    """Return the libggml-base that a process maps, of which there may be several; raises where there is none."""
    found = tuple(path for path in mapped_files(pid) if path.name.split(".so")[0] == LAYOUT_LIBRARY)
    if not found:
        raise EngineError(f"process {pid}: maps no {LAYOUT_LIBRARY}; no llama.cpp is loaded in it, or not as a library")
    if replaced := next((path for path in found if path.name.endswith(_DELETED)), None):
        raise EngineError(
            f"process {pid}: {str(replaced).removesuffix(_DELETED)} was replaced after the process loaded it; "
            "start that program anew"
        )
    return found


def _ask(include_dir: Path, library: Path, cache_dir: Path) -> str:
    root = source_root(_SOURCE)
    links = (str(library), f"-Wl,--disable-new-dtags,-rpath,{library.parent}")
    program = build_program(
        "tensor-layout",
        [root / each for each in _SOURCES],
        root / "include",
        cache_dir,
        extra=(f"-I{include_dir}", *lacking_names(root / "src" / "engine", (include_dir,))),
        links=links,
        identity=library_build_id(library),
    )
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    if done.returncode:
        raise NativeBuildError(
            f"{library}: does not run with the headers in {include_dir} ({done.stderr.strip()[:200]}); "
            "name those of its own build"
        )
    return done.stdout


def _parse(path: Path, build_id: str) -> TensorLayout:
    try:
        return TensorLayout.from_plain({**json.loads(path.read_text()), "build_id": build_id})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise NativeBuildError(f"{path}: no layout of a tensor ({error}); remove it") from None
