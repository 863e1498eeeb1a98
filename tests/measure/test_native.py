"""What is compiled, where it is kept, and what is refused."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.errors import EngineError, NativeBuildError
from perfsuite.measure import native
from perfsuite.measure.engine import ENGINE_LIBRARIES, Engine
from perfsuite.measure.native import (
    PROBE_LIBRARY,
    build_engine_library,
    build_phase_tracer,
    build_probe_library,
    lacking_names,
    load_probe_library,
    load_problem,
    loaded_library,
    native_dirs,
    refuse_other_engine,
)

Maps = Callable[..., str]


def maps_of(*paths: Path) -> str:
    """Write lines as /proc/PID/maps has them, with what every process maps around them."""
    row = "7f0000000000-7f0000001000 r-xp 00000000 08:01 42 "
    others = [row + "                  /usr/lib/libc.so.6", row.strip(), row + "      [vdso]"]
    return "\n".join([*others, *(f"{row}          {path}" for path in paths)]) + "\n"


def libraries(engine: Engine) -> tuple[Path, ...]:
    return tuple(engine.library(name) for name in ENGINE_LIBRARIES)


@pytest.fixture
def copied(engine: Engine, tmp_path: Path) -> Path:
    """Return a folder with a copy of every library, by whose build ids it is the same build."""
    for path in libraries(engine):
        shutil.copy(path, tmp_path / path.name)
    return tmp_path


def test_the_engines_own_libraries_are_accepted(engine: Engine, tmp_path: Path) -> None:
    """What counts is the file, in however many parts it is mapped, and not by which link; a name may have blanks."""
    refuse_other_engine(engine, maps_of(*libraries(engine), *libraries(engine)))
    folder = tmp_path / "another place"
    folder.mkdir()
    for path in libraries(engine):
        (folder / path.name).symlink_to(path)
    refuse_other_engine(engine, maps_of(*(folder / path.name for path in libraries(engine))))
    refuse_other_engine(engine, maps_of(*libraries(engine), tmp_path / "libggml-opencl.so"))  # which the folder lacks


@pytest.mark.parametrize("name", ENGINE_LIBRARIES)
def test_a_library_from_elsewhere_is_refused(engine: Engine, copied: Path, name: str) -> None:
    """One copy in place of the folder's own, beside it, or one that is gone is named; two builds would else be one."""
    own = libraries(engine)
    other = copied / engine.library(name).name
    mixed = [other if path == engine.library(name) else path for path in own]
    for mapped in (mixed, [*own, other], [copied / f"{other.name} (deleted)"]):
        with pytest.raises(
            EngineError, match=rf"{name}\.so was loaded from {copied}.*, not from there; RUNPATH or LD_"
        ):
            refuse_other_engine(engine, maps_of(*mapped))
    with pytest.raises(EngineError, match=f"the process maps no {name} of build"):
        refuse_other_engine(engine, maps_of(*(path for path in own if path != engine.library(name))))


def test_the_probe_library_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "native_dirs", lambda: (Path(__file__).parents[2] / "native",))
    built = build_probe_library(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    assert build_probe_library(tmp_path) == built
    assert load_probe_library(tmp_path).ps_probe_bandwidth
    assert load_problem(built) is None
    assert not list(built.parent.parent.glob(".build-*"))


def test_an_installed_probe_library_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(native, "native_dirs", lambda: (tmp_path / "nothing", tmp_path))
    monkeypatch.setattr(ctypes, "CDLL", lambda path, mode=0: loaded.append(path))
    (tmp_path / PROBE_LIBRARY).touch()
    load_probe_library(tmp_path / "cache")
    assert loaded == [str(tmp_path / PROBE_LIBRARY)]
    assert not (tmp_path / "cache").exists()


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Replace the compiler by a list of what it was asked to make."""
    asked: list[Path] = []

    def instead(target: Path, *_: object) -> None:
        asked.append(target)
        target.parent.mkdir(parents=True)
        target.touch()

    monkeypatch.setattr(native, "_compile", instead)
    return asked


def test_each_build_of_the_engine_has_a_library_of_its_own(
    engine: Engine, tmp_path: Path, compiled: list[Path]
) -> None:
    first = build_engine_library(engine, tmp_path)
    assert build_engine_library(engine, tmp_path) == first
    second = build_engine_library(replace(engine, build_id="0" * 16), tmp_path)
    assert compiled == [first, second]
    assert first != second


def test_a_changed_source_is_compiled_again(tmp_path: Path, compiled: list[Path], tree: Path) -> None:
    build_probe_library(tmp_path)
    for changed in (tree / "src" / "threads.c", tree / "include" / "a.h"):
        changed.write_text("/* another */")
        build_probe_library(tmp_path)
    assert len(set(compiled)) == 3


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a source tree of two files, which is the only one."""
    tree = tmp_path / "tree"
    (tree / "src" / "engine").mkdir(parents=True)
    (tree / "include").mkdir()
    (tree / "src" / "threads.c").write_text("int x;")
    (tree / "src" / "engine" / "live.c").write_text("int y;")
    (tree / "include" / "a.h").write_text("/* nothing */")
    monkeypatch.setattr(native, "native_dirs", lambda: (tree,))
    return tree


def test_a_source_that_does_not_compile_names_the_log(tmp_path: Path, tree: Path) -> None:
    (tree / "src" / "threads.c").write_text("this is not C\n")
    with pytest.raises(
        NativeBuildError, match=r"^threads\.c\.o: does not build \(.* returned 1\); see \S*\.log$"
    ) as caught:
        build_probe_library(tmp_path / "cache")
    log = Path(str(caught.value).rpartition("see ")[2])
    assert "threads.c" in log.read_text()
    assert "error" in log.read_text()
    assert [path.name for path in (tmp_path / "cache" / "native").iterdir()] == [log.name]


@pytest.mark.usefixtures("tree")
def test_a_compiler_that_hangs_or_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hanging(command: list[str], **_: object) -> None:
        raise subprocess.TimeoutExpired(command, 300)

    monkeypatch.setattr(subprocess, "run", hanging)
    with pytest.raises(NativeBuildError, match=r"still running after 300 s; see .*\.log"):
        build_probe_library(tmp_path / "cache")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NativeBuildError, match=r"no compiler \(cc, gcc, clang\) on the PATH; install one"):
        build_probe_library(tmp_path / "cache")


def test_what_lacks_is_named(engine: Engine, tmp_path: Path, tree: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(NativeBuildError, match=r"cache/native: cannot be written"):
        build_probe_library(tmp_path / "cache")
    with pytest.raises(NativeBuildError, match=r"src/engine/driver\.cpp is not installed"):
        build_engine_library(engine, tmp_path)


def test_what_a_release_of_the_engine_lacks_is_found_in_its_headers(engine: Engine, tmp_path: Path) -> None:
    """A name that the sources ask for, and no header has, is given to the compiler; in whatever case it is written."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "release.h").write_text("#ifdef PS_LACKS_LLAMA_DECODE\n#ifndef PS_LACKS_FLASH_ATTN_TYPE\n")
    (tmp_path / "llama.h").write_text("int llama_decode(void); struct { bool flash_attn; };")
    assert lacking_names(tmp_path / "src", (tmp_path,)) == ("-DPS_LACKS_FLASH_ATTN_TYPE",)
    own = next(place for place in native_dirs() if (place / "src" / "engine").is_dir()) / "src" / "engine"
    assert lacking_names(own, engine.include_dirs) == ()


def test_a_library_that_does_not_load_is_named(tmp_path: Path) -> None:
    path = tmp_path / PROBE_LIBRARY
    path.write_text("no library")
    with pytest.raises(NativeBuildError, match=rf"{path}: cannot be loaded \("):
        native._load(path)
    assert load_problem(path)


def test_the_phase_tracer_is_one_library_for_an_engine(engine: Engine, engine_cache: Path) -> None:
    library = build_phase_tracer(engine, engine_cache)
    assert library.name == "libperfsuite_phase_tracer.so"
    assert build_phase_tracer(engine, engine_cache) == library
    symbols = library.read_bytes()
    assert all(name in symbols for name in (b"llama_decode", b"ps_phase_copy", b"ps_phase_softmax"))
    assert str(library) not in Path("/proc/self/maps").read_text()


def test_a_library_that_somebody_else_has_loaded_is_found() -> None:
    """What this process maps is returned, and what it does not map is not loaded for it."""
    maps = Path("/proc/self/maps").read_text().split()
    libc = next(Path(word) for word in maps if Path(word).name.startswith("libc.so"))
    assert loaded_library(libc).getpid() == os.getpid()
    with pytest.raises(NativeBuildError, match=r"libnothing\.so: cannot be loaded"):
        loaded_library(Path("/lib/libnothing.so"))
