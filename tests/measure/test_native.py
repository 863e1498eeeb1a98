"""What is compiled, where it is kept, and what is refused."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.errors import EngineError, NativeBuildError
from perfsuite.measure import native
from perfsuite.measure.engine import ENGINE_LIBRARIES, Engine
from perfsuite.measure.native import (
    build_engine_library,
    build_probe_library,
    lacking_names,
    load_probe_library,
    native_dirs,
    refuse_other_engine,
)


def maps_of(*paths: Path) -> str:
    """Write lines as /proc/PID/maps has them, with what every process maps around them."""
    row = "7f0000000000-7f0000001000 r-xp 00000000 08:01 42 "
    others = [row + "                  /usr/lib/libc.so.6", row.strip(), row + "      [vdso]"]
    return "\n".join([*others, *(f"{row}          {path}" for path in paths)]) + "\n"


def libraries(engine: Engine) -> tuple[Path, ...]:
    return tuple(engine.library(name) for name in ENGINE_LIBRARIES)


@pytest.fixture
def copied(engine: Engine, tmp_path: Path) -> Path:
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
    assert not list(built.parent.parent.glob(".perfsuite-work-*"))


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
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


def test_what_a_release_of_the_engine_lacks_is_found_in_its_headers(engine: Engine, tmp_path: Path) -> None:
    """A name that the sources ask for, and no header has, is given to the compiler; in whatever case it is written."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "release.h").write_text("#ifdef PS_LACKS_LLAMA_DECODE\n#ifndef PS_LACKS_FLASH_ATTN_TYPE\n")
    (tmp_path / "llama.h").write_text("int llama_decode(void); struct { bool flash_attn; };")
    assert lacking_names(tmp_path / "src", (tmp_path,)) == ("-DPS_LACKS_FLASH_ATTN_TYPE",)
    own = next(place for place in native_dirs() if (place / "src" / "engine").is_dir()) / "src" / "engine"
    assert lacking_names(own, engine.include_dirs) == ()
