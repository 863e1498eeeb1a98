"""Which llama.cpp is found, and what tells one build from another."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from perfsuite.errors import EngineError
from perfsuite.measure.engine import (
    ENGINE_LIBRARIES,
    Engine,
    engine_build_id,
    find_engine,
    include_folders,
    library_build_id,
    library_folder,
    other_declaration,
)
from perfsuite.measure.native import build_phase_tracer


def touch(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    place = tmp_path / "llama.cpp"
    touch(place / "CMakeLists.txt", place / "include" / "llama.h", place / "ggml" / "include" / "ggml.h")
    return place


def cmake_built(build: Path, checkout: Path, name: str = "CMAKE_HOME_DIRECTORY:INTERNAL") -> Path:
    touch(build / "bin" / "libllama.so.0")
    (build / "CMakeCache.txt").write_text(f"# This is the CMakeCache file.\n{name}={checkout}\nCMAKE_AR:FILEPATH=ar\n")
    return build


def test_a_checkout_a_build_and_its_bin_are_one(tmp_path: Path, checkout: Path) -> None:
    """Whichever is named, the libraries are those of the build, and the headers are in two folders of the checkout.

    Where the cache of CMake names what is no longer there, the folders above count.
    """
    build = cmake_built(checkout / "build", checkout)
    assert {library_folder(each) for each in (checkout, build, build / "bin")} == {build / "bin"}
    assert include_folders(build / "bin") == (checkout / "include", checkout / "ggml" / "include")
    moved = checkout.rename(tmp_path / "moved")
    assert include_folders(library_folder(moved)) == (moved / "include", moved / "ggml" / "include")


def test_a_tilde_is_the_home(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell leaves the tilde of ``--against=~/llama.cpp`` as it is."""
    build = cmake_built(checkout / "build", checkout)
    monkeypatch.setenv("HOME", str(checkout.parent))
    assert library_folder(Path("~/llama.cpp")) == build / "bin"


@pytest.mark.parametrize("name", ["CMAKE_HOME_DIRECTORY:INTERNAL", "llama.cpp_SOURCE_DIR:STATIC"])
def test_a_build_elsewhere_names_its_checkout(tmp_path: Path, checkout: Path, name: str) -> None:
    """The cache of CMake does, before headers of another llama.cpp that lie nearer; as a part of a project as well."""
    build = cmake_built(tmp_path / "elsewhere" / "out", checkout, name)
    touch(tmp_path / "elsewhere" / "include" / "llama.h", tmp_path / "elsewhere" / "include" / "ggml.h")
    assert include_folders(library_folder(build)) == (checkout / "include", checkout / "ggml" / "include")


@pytest.mark.parametrize("folder", ["lib", "lib64", "lib/aarch64-linux-gnu"])
def test_a_prefix_has_libraries_beside_its_headers(tmp_path: Path, folder: str) -> None:
    touch(tmp_path / folder / "libllama.so", tmp_path / "bin" / "llama-cli")
    touch(tmp_path / "include" / "llama.h", tmp_path / "include" / "ggml.h")
    assert library_folder(tmp_path) == library_folder(tmp_path / folder) == tmp_path / folder
    assert include_folders(tmp_path / folder) == (tmp_path / "include",)


def test_several_builds_are_named(checkout: Path) -> None:
    cmake_built(checkout / "build-release", checkout)
    (checkout / "build").symlink_to("build-release")
    assert library_folder(checkout) == checkout / "build-release" / "bin"
    cmake_built(checkout / "build-debug", checkout)
    told = r"several builds \(build-debug, build-release\); name one, such as .*-debug$"
    with pytest.raises(EngineError, match=told):
        library_folder(checkout)


def test_a_static_build_is_refused_with_the_option_that_makes_shared_libraries(checkout: Path, tmp_path: Path) -> None:
    touch(checkout / "build" / "src" / "libllama.a", tmp_path / "prefix" / "bin" / "llama-cli")
    told = r"is a static build \(\S+/(libllama\.a|llama-cli)\); .*-DBUILD_SHARED_LIBS=ON"
    for named in (checkout, checkout / "build", tmp_path / "prefix"):
        with pytest.raises(EngineError, match=told):
            library_folder(named)
    assert library_folder(cmake_built(checkout / "build-shared", checkout).parent) == checkout / "build-shared" / "bin"


def test_native_code_is_compiled_against_headers_in_two_folders(
    engine: Engine, checkout: Path, engine_cache: Path
) -> None:
    shutil.rmtree(checkout / "include")
    shutil.rmtree(checkout / "ggml")
    shutil.copytree(engine.include_dirs[0], checkout / "include", ignore=shutil.ignore_patterns("ggml*", "gguf*"))
    shutil.copytree(engine.include_dirs[0], checkout / "ggml" / "include", ignore=shutil.ignore_patterns("llama*"))
    shutil.copytree(engine.library_dir, checkout / "build" / "bin", symlinks=True)
    found = find_engine(checkout)
    assert (found.library_dir, found.build_id) == (checkout / "build" / "bin", engine.build_id)
    assert found.include_dirs == (checkout / "include", checkout / "ggml" / "include")
    assert build_phase_tracer(found, engine_cache).is_file()


_NOTE_SECTION, _OTHER_SECTION = 7, 1


def note(kind: int, name: bytes, desc: bytes) -> bytes:
    """Lay out one ELF note, name and description padded to four bytes."""
    padded = [part + b"\0" * (-len(part) % 4) for part in (name, desc)]
    return struct.pack("<III", len(name), len(desc), kind) + b"".join(padded)


def elf(*sections: tuple[int, bytes]) -> bytes:
    """Lay out a little-endian 64-bit ELF file of these sections, the table of sections behind them."""
    at, contents, table = 64, b"", b""
    for kind, content in sections:
        table += struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, at + len(contents), len(content), 0, 0, 4, 0)
        contents += content
    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack("<HHIQQQ", 3, 62, 1, 0, 0, at + len(contents))
    header += struct.pack("<IHHHHHH", 0, 64, 0, 0, 64, len(sections), 0)
    return header + contents + table


BUILD_ID = bytes(range(20))
BUILD_ID_NOTE = note(3, b"GNU\0", BUILD_ID)


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """Return a folder as a build of llama.cpp leaves it: ``lib`` with libraries, ``include`` beside it."""
    libraries = [tmp_path / "lib" / f"{name}.so" for name in ENGINE_LIBRARIES]
    touch(*libraries, tmp_path / "include" / "llama.h", tmp_path / "include" / "ggml.h")
    for path in libraries:
        path.write_bytes(path.stem.encode())
    return tmp_path / "lib"


@pytest.mark.parametrize(
    "content",
    [
        elf((_OTHER_SECTION, b"text"), (_NOTE_SECTION, note(1, b"GNU\0", b"abi")), (_NOTE_SECTION, BUILD_ID_NOTE)),
        elf((_NOTE_SECTION, note(1, b"Linux\0", b"seven b") + BUILD_ID_NOTE)),
    ],
    ids=["third-section", "second-note"],
)
def test_the_build_id_is_read_from_the_gnu_note(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "library.so"
    path.write_bytes(content)
    assert library_build_id(path) == BUILD_ID.hex()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        elf((_OTHER_SECTION, BUILD_ID_NOTE)),
        elf((_NOTE_SECTION, note(3, b"XYZ\0", BUILD_ID))),
        elf((_NOTE_SECTION, BUILD_ID_NOTE[:9])),
        elf((_NOTE_SECTION, BUILD_ID_NOTE))[:-1],
    ],
    ids=["empty", "no-note", "other-owner", "cut-note", "cut-table"],
)
def test_a_library_without_a_note_is_known_by_its_content(tmp_path: Path, content: bytes) -> None:
    first, same, other = (tmp_path / name for name in ("first.so", "same.so", "other.so"))
    first.write_bytes(content)
    same.write_bytes(content)
    other.write_bytes(content + b"!")
    assert len(library_build_id(first)) == 40
    assert library_build_id(first) == library_build_id(same) != library_build_id(other)


def test_the_engines_id_follows_each_library(built: Path) -> None:
    libraries = {name: built / f"{name}.so" for name in ENGINE_LIBRARIES}
    before = engine_build_id(libraries)
    assert len(before) == 16
    assert engine_build_id(dict(reversed(libraries.items()))) == before
    for path in libraries.values():
        old = path.read_bytes()
        path.write_bytes(old + b"!")
        assert engine_build_id(libraries) != before
        path.write_bytes(old)
    assert engine_build_id(libraries) == before


def test_a_plain_form_of_before_names_one_folder_of_headers(built: Path) -> None:
    engine = find_engine(built)
    plain = engine.to_plain()
    (include,) = plain.pop("include_dirs")
    assert Engine.from_plain({**plain, "include_dir": include}) == engine


def test_a_backend_for_each_kind_of_processor_is_refused_with_the_option_that_makes_one(built: Path) -> None:
    (built / "libggml-cpu.so").rename(built / "libggml-cpu-haswell.so")
    with pytest.raises(EngineError, match=r"libggml-cpu\.so is not there; build it with -DGGML_BACKEND_DL=OFF"):
        find_engine(built)


@pytest.mark.parametrize(
    ("old", "other"),
    [
        ("struct llama_batch { int32_t n; };  // as before\nLLAMA_API int llama_new(void);", None),
        ("struct llama_batch { int64_t n; };", "llama_batch"),
        ("struct llama_batch {\n /* n */ int32_t n; };\nLLAMA_API int llama_decode( struct llama_batch b);", None),
        ("LLAMA_API int llama_decode(struct llama_batch b, bool now);", "llama_decode"),
        ('DEPRECATED(LLAMA_API void llama_decode(struct llama_batch b), "use another");', "llama_decode"),
    ],
)
def test_what_two_builds_declare_otherwise_is_named(tmp_path: Path, old: str, other: str | None) -> None:
    """Comments and spaces make no difference, nor does what only one of them has."""
    header = "struct llama_batch { int32_t n; };\nLLAMA_API int llama_decode(struct llama_batch b);\n"
    engines = []
    for name, text in (("old", old), ("new", header)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "llama.h").write_text(text)
        engines.append(Engine(library_dir=tmp_path, include_dirs=(tmp_path / name,), build_id=name))
    assert other_declaration(*engines) == other
