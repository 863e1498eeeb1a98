"""Where libraries and headers are found in what a user names."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.errors import EngineError
from perfsuite.measure.engine import Engine, find_engine
from perfsuite.measure.engine_folders import include_folders, library_folder
from perfsuite.measure.native import build_phase_tracer


def touch(*paths: Path) -> None:
    """Make empty files, with their folders."""
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout of llama.cpp that was not built."""
    place = tmp_path / "llama.cpp"
    touch(place / "CMakeLists.txt", place / "include" / "llama.h", place / "ggml" / "include" / "ggml.h")
    return place


def cmake_built(build: Path, checkout: Path, name: str = "CMAKE_HOME_DIRECTORY:INTERNAL") -> Path:
    """Add what CMake leaves of a build in a folder, and return the folder."""
    touch(build / "bin" / "libllama.so.0")
    (build / "CMakeCache.txt").write_text(f"# This is the CMakeCache file.\n{name}={checkout}\nCMAKE_AR:FILEPATH=ar\n")
    return build


def test_a_checkout_a_build_and_its_bin_are_one(tmp_path: Path, checkout: Path) -> None:
    """Whichever is named, the libraries are those of the build, and the headers lie in two folders of the checkout.

    Where the cache of CMake names what is no longer there, the folders above count.
    """
    build = cmake_built(checkout / "build", checkout)
    assert {library_folder(each) for each in (checkout, build, build / "bin")} == {build / "bin"}
    assert include_folders(build / "bin") == (checkout / "include", checkout / "ggml" / "include")
    moved = checkout.rename(tmp_path / "moved")
    assert include_folders(library_folder(moved)) == (moved / "include", moved / "ggml" / "include")


def test_a_tilde_is_the_home(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell leaves the tilde of ``--against=~/llama.cpp`` as it is; a home that nobody has is one line."""
    build = cmake_built(checkout / "build", checkout)
    monkeypatch.setenv("HOME", str(checkout.parent))
    assert library_folder(Path("~/llama.cpp")) == build / "bin"
    with pytest.raises(EngineError, match=r"~nobody-of-that-name/llama\.cpp: is no folder"):
        library_folder(Path("~nobody-of-that-name/llama.cpp"))


@pytest.mark.parametrize("name", ["CMAKE_HOME_DIRECTORY:INTERNAL", "llama.cpp_SOURCE_DIR:STATIC"])
def test_a_build_elsewhere_names_its_checkout(tmp_path: Path, checkout: Path, name: str) -> None:
    """The cache of CMake does, before headers of another llama.cpp that lie nearer; as a part of a project as well."""
    build = cmake_built(tmp_path / "elsewhere" / "out", checkout, name)
    touch(tmp_path / "elsewhere" / "include" / "llama.h", tmp_path / "elsewhere" / "include" / "ggml.h")
    assert include_folders(library_folder(build)) == (checkout / "include", checkout / "ggml" / "include")


@pytest.mark.parametrize("folder", ["lib", "lib64", "lib/aarch64-linux-gnu"])
def test_a_prefix_has_libraries_beside_its_headers(tmp_path: Path, folder: str) -> None:
    """A prefix that llama.cpp was installed to is found by itself and by its folder of libraries."""
    touch(tmp_path / folder / "libllama.so", tmp_path / "bin" / "llama-cli")
    touch(tmp_path / "include" / "llama.h", tmp_path / "include" / "ggml.h")
    assert library_folder(tmp_path) == library_folder(tmp_path / folder) == tmp_path / folder
    assert include_folders(tmp_path / folder) == (tmp_path / "include",)


def test_several_builds_are_named(checkout: Path) -> None:
    """A checkout with two builds is refused with their names, and one that is linked to is counted once."""
    cmake_built(checkout / "build-release", checkout)
    (checkout / "build").symlink_to("build-release")
    assert library_folder(checkout) == checkout / "build-release" / "bin"
    cmake_built(checkout / "build-debug", checkout)
    with pytest.raises(
        EngineError, match=r"several builds \(build-debug, build-release\); name one, such as .*-debug$"
    ):
        library_folder(checkout)


def test_a_static_build_is_refused_with_the_option_that_makes_shared_libraries(checkout: Path, tmp_path: Path) -> None:
    """It is named, in a checkout, a build and a prefix; beside a shared build it counts as none."""
    touch(checkout / "build" / "src" / "libllama.a", tmp_path / "prefix" / "bin" / "llama-cli")
    for named in (checkout, checkout / "build", tmp_path / "prefix"):
        with pytest.raises(
            EngineError, match=r"is a static build \(\S+/(libllama\.a|llama-cli)\); .*-DBUILD_SHARED_LIBS=ON"
        ):
            library_folder(named)
    assert library_folder(cmake_built(checkout / "build-shared", checkout).parent) == checkout / "build-shared" / "bin"


def test_what_holds_no_llama_is_refused_with_what_was_looked_for(tmp_path: Path, checkout: Path) -> None:
    """A folder that is not there, one of something else, and a checkout without a build have a line each."""
    for named, told in (
        (tmp_path / "none", r"none: is no folder; expected a checkout of llama\.cpp"),
        (tmp_path, r"libllama\.so is not there, nor in its bin/, lib/ or lib64/, .* expected a checkout of llama\.cpp"),
        (checkout, r"llama\.cpp: is a checkout that was not built; run 'cmake -B build "),
    ):
        with pytest.raises(EngineError, match=told) as caught:
            library_folder(named)
        assert "\n" not in str(caught.value)


def test_missing_headers_are_named_with_where_they_were_looked_for(tmp_path: Path) -> None:
    """The checkout that CMake's cache names is among the places."""
    build = cmake_built(tmp_path / "build", tmp_path / "gone")
    with pytest.raises(EngineError, match=rf"no llama\.h and ggml\.h .* of {tmp_path}/gone, {build}/bin, {build}, "):
        include_folders(build / "bin")


def test_native_code_is_compiled_against_headers_in_two_folders(
    engine: Engine, checkout: Path, engine_cache: Path
) -> None:
    """The libraries of a build tree, and the headers where a checkout has them."""
    shutil.rmtree(checkout / "include")
    shutil.rmtree(checkout / "ggml")
    shutil.copytree(engine.include_dirs[0], checkout / "include", ignore=shutil.ignore_patterns("ggml*", "gguf*"))
    shutil.copytree(engine.include_dirs[0], checkout / "ggml" / "include", ignore=shutil.ignore_patterns("llama*"))
    shutil.copytree(engine.library_dir, checkout / "build" / "bin", symlinks=True)
    found = find_engine(checkout)
    assert found == replace(
        engine,
        library_dir=checkout / "build" / "bin",
        include_dirs=(checkout / "include", checkout / "ggml" / "include"),
    )
    assert build_phase_tracer(found, engine_cache).is_file()
