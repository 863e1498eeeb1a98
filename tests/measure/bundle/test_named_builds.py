"""What a user may call a build, and what is compiled for it."""

from __future__ import annotations

import re
import subprocess
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from perfsuite.errors import EngineError, NativeBuildError
from perfsuite.measure.bundle import named_builds
from perfsuite.measure.bundle.compilers import Toolchain
from perfsuite.measure.bundle.engine_build import EngineOrder
from perfsuite.measure.bundle.llama_source import LlamaSource
from perfsuite.measure.bundle.named_builds import Builder
from perfsuite.measure.bundle.targets import target_of
from perfsuite.measure.engine import Engine, find_engine
from perfsuite.measure.engine_store import open_store

TARGET = target_of("x86_64", has_glibc=True)
TOOLCHAIN = Toolchain(cc=("cc",), cxx=("c++",), version="1", links=(), carried=(), has_openmp=False)


Make = Callable[..., Builder]

#: Of a checkout, as far as anybody looks.
_FILES = ("CMakeLists.txt", "include/llama.h", "ggml/include/ggml.h", "ggml/CMakeLists.txt", "src/CMakeLists.txt")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of two commits; the older one has the tag ``old``."""
    folder = tmp_path / "it's llama.cpp"
    for name in _FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("old\n")
    git(folder, "init", "-q")
    for content in ("old", "new"):
        (folder / "src/CMakeLists.txt").write_text(f"{content}\n")
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", content)
    git(folder, "tag", "old", "HEAD~")
    return folder


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=ada", "-c", "user.email=ada@desk")
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, engine: Engine) -> list[LlamaSource]:
    """Compile nothing; return the sources that would have been."""
    seen: list[LlamaSource] = []

    def build(order: EngineOrder, *_: object) -> Engine:
        seen.append(order.source)
        return engine

    monkeypatch.setattr(named_builds, "build_engine", build)
    return seen


@pytest.fixture
def builder(tmp_path: Path, checkout: Path) -> Make:
    return lambda **more: Builder(cache_dir=tmp_path / "cache", tell=lambda *_: None, source=checkout, **more)


def test_what_was_built_is_taken_and_a_mere_checkout_compiled(
    builder: Make, compiled: list[LlamaSource], engine: Engine, checkout: Path
) -> None:
    assert builder().engine(str(engine.library_dir)) == find_engine(engine.library_dir)
    assert compiled == []
    builder().engine(str(checkout))
    assert [each.folder for each in compiled] == [checkout]


def test_a_release_is_compiled(
    builder: Make, compiled: list[LlamaSource], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    find = Mock(return_value=LlamaSource(folder=tmp_path, name="0.3.31", digest="0"))
    monkeypatch.setattr(named_builds, "find_llama", find)
    for named in ("0.3.31", "llama-cpp-python==0.3.31"):
        builder().engine(named)
    assert [call.args[0] for call in find.call_args_list] == ["0.3.31"] * 2
    assert compiled == [find.return_value] * 2


def test_a_revision_is_compiled_from_a_copy(builder: Make, compiled: list[LlamaSource], checkout: Path) -> None:
    (checkout / "src/CMakeLists.txt").write_text("not committed\n")
    for named in ("old", "HEAD", "HEAD"):
        builder().engine(named)
    told = [(each.folder / "src/CMakeLists.txt").read_text() for each in compiled]
    assert told == ["old\n", "new\n", "new\n"]
    assert compiled[1].folder == compiled[2].folder
    assert (checkout / "src/CMakeLists.txt").read_text() == "not committed\n"


def test_a_revision_is_built_by_the_users_own_command(
    builder: Make, compiled: list[LlamaSource], engine: Engine
) -> None:
    """It runs in the copy, and its libraries are taken from there; what fails is built again."""
    build = f"mkdir build && ln -s '{engine.library_dir}' build/bin"
    found = builder(command=build).engine("old")
    assert (found.library_dir, compiled) == (engine.library_dir, [])
    broken = builder(command="echo error: no compiler; exit 3")
    for _ in range(2):
        with pytest.raises(NativeBuildError, match="error: no compiler"):
            broken.engine("old")


def test_a_kept_build_is_of_all_that_made_it(
    builder: Make, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another compiler, its words, or another library of the system: it is built again; else it says of when."""
    compiler = tmp_path / "bin/cc"
    compiler.parent.mkdir()
    compiler.write_text("#!/bin/sh\necho first\n")
    compiler.chmod(0o755)
    linked = {"/lib/libblas.so.3": "1"}
    monkeypatch.setenv("PATH", str(compiler.parent), prepend=":")
    monkeypatch.setattr(named_builds, "_linked", lambda folder: dict(linked))
    build = f"echo >> {tmp_path}/built; mkdir build && cp -r '{engine.library_dir}' build/bin"
    ages = []

    def made() -> int:
        asked = builder(command=build)
        ages.append(asked.age(asked.engine("old")))
        return len((tmp_path / "built").read_text().splitlines())

    assert [made(), made()] == [1, 1]
    assert ages[0] == ""
    assert ages[1].startswith(", kept, of 20")
    compiler.write_text("#!/bin/sh\necho second\n")
    assert made() == 2
    monkeypatch.setenv("CXXFLAGS", "-O0")
    assert [made(), made()] == [3, 3]
    linked["/lib/libblas.so.3"] = "2"
    assert [made(), made()] == [4, 4]


def test_the_suites_own_build_is_of_all_that_made_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = LlamaSource(folder=tmp_path, name="x", digest="0")
    order = EngineOrder(source=source, target=TARGET, processor=TARGET.processor(None), toolchain=TOOLCHAIN)
    keys = [order.key, replace(order, toolchain=replace(TOOLCHAIN, digest="1")).key]
    monkeypatch.setenv("LDFLAGS", "-lother")
    assert len({*keys, order.key}) == 3


@pytest.mark.parametrize(
    ("there", "named", "told"),
    [
        ("folder", "old", "old: means the folder ./old and the revision refs/tags/old; write it"),
        ("file", "old", "old: means the file ./old and the revision refs/tags/old; write it"),
        ("branch", "old", "old: means the revision refs/tags/old and the revision refs/heads/old; write it"),
        ("folder", "0.3.31", "means the folder ./0.3.31 and the release llama-cpp-python==0.3.31; write it"),
        ("tag", "0.3.31", "means the release llama-cpp-python==0.3.31 and the revision refs/tags/0.3.31; write it"),
    ],
)
def test_an_ambiguous_name_is_refused_with_its_meanings(
    builder: Make, checkout: Path, monkeypatch: pytest.MonkeyPatch, there: str, named: str, told: str
) -> None:
    """A folder or file of the name, or a second revision; each meaning can be written alone."""
    work = checkout.parent / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    made = {
        "folder": lambda: Path(named).mkdir(),
        "file": Path(named).touch,
        "branch": lambda: git(checkout, "branch", named),
        "tag": lambda: git(checkout, "tag", named),
    }
    made[there]()
    with pytest.raises(EngineError, match=re.escape(told)):
        builder().check(named)
    written = told.partition("means the ")[2].partition(";")[0].split(" and the ")
    builder().check(*(each.partition(" ")[2] for each in written))


def test_changes_that_no_commit_holds_are_counted_and_can_be_taken(
    builder: Make, compiled: list[LlamaSource], checkout: Path
) -> None:
    """Of what is checked out alone, new files too; the checkout's index stays as it is."""
    (checkout / "src/CMakeLists.txt").write_text("mine\n")
    (checkout / "src/new.cpp").write_text("")
    assert [builder().n_changes(named) for named in ("HEAD", "old", "./no.whl")] == [2, 0, 0]
    builder().engine("HEAD", with_changes=True)
    assert (compiled[0].folder / "src/CMakeLists.txt").read_text() == "mine\n"
    assert (compiled[0].folder / "src/new.cpp").exists()
    assert git(checkout, "diff", "--cached") == ""


def test_a_range_is_its_revisions(builder: Make, checkout: Path) -> None:
    """Oldest first, with the one before the range; what is no range stands for itself."""
    assert builder().expanded("old..HEAD") == tuple(git(checkout, "log", "--format=%H", "--reverse").split())
    for single in ("old", "0.3.36", str(checkout), "..", "old..", "..HEAD"):
        assert builder().expanded(single) == (single,)


def test_a_kept_engine_goes_by_the_beginning_of_its_id(tmp_path: Path, engine: Engine) -> None:
    """As 'perfsuite engines list' shows it; kernels are none."""
    entry = open_store(tmp_path).keep_engine(engine)
    found = Builder(cache_dir=tmp_path, tell=lambda *_: None).engine(entry.engine_id[:6])
    assert found.build_id == engine.build_id
    assert tmp_path in found.library_dir.parents


def test_a_wheel_is_unpacked_once(tmp_path: Path, engine: Engine) -> None:
    """Libraries and headers of it alone, into the cache by its content."""
    wheel = tmp_path / "llama_cpp_python-0.3.36-py3-none-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in engine.library_dir.glob("lib*.so*"):
            archive.write(path, f"llama_cpp/lib/{path.name}")
        for path in (each for folder in engine.include_dirs for each in folder.glob("*.h")):
            archive.write(path, f"include/{path.name}")
        archive.writestr("other/file", "")
        archive.writestr("llama_cpp/lib/../../../escape", "")
    builder = Builder(cache_dir=tmp_path / "cache", tell=lambda *_: None)
    found = builder.engine(str(wheel))
    assert found.build_id == engine.build_id
    assert builder.engine(str(wheel)) == found
    assert not list((tmp_path / "cache").rglob("other"))
    escaped = [each for each in tmp_path.rglob("escape") if tmp_path / "cache/llama-wheels" not in each.parents]
    assert escaped == []
    assert len([each for each in (tmp_path / "cache/llama-wheels").iterdir() if each.is_dir()]) == 1
