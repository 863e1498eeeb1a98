"""Which llama.cpp is found, and what tells one build from another."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from perfsuite.errors import EngineError
from perfsuite.measure.engine import ENGINE_LIBRARIES, Engine, engine_build_id, find_engine, library_build_id

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
    for name in ENGINE_LIBRARIES:
        path = tmp_path / "lib" / f"{name}.so"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(name.encode())
    for header in ("llama.h", "ggml.h"):
        (tmp_path / "include").mkdir(exist_ok=True)
        (tmp_path / "include" / header).touch()
    return tmp_path / "lib"


@pytest.mark.parametrize(
    "content",
    [
        elf((_NOTE_SECTION, BUILD_ID_NOTE)),
        elf((_OTHER_SECTION, b"text"), (_NOTE_SECTION, note(1, b"GNU\0", b"abi")), (_NOTE_SECTION, BUILD_ID_NOTE)),
        elf((_NOTE_SECTION, note(1, b"Linux\0", b"seven b") + BUILD_ID_NOTE)),
    ],
    ids=["alone", "third-section", "second-note"],
)
def test_the_build_id_is_read_from_the_gnu_note(tmp_path: Path, content: bytes) -> None:
    """The build id is the description of the GNU note of type 3, wherever it stands."""
    path = tmp_path / "library.so"
    path.write_bytes(content)
    assert library_build_id(path) == BUILD_ID.hex()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no library at all",
        elf(),
        elf((_OTHER_SECTION, BUILD_ID_NOTE)),
        elf((_NOTE_SECTION, note(3, b"XYZ\0", BUILD_ID))),
        elf((_NOTE_SECTION, BUILD_ID_NOTE[:9])),
        elf((_NOTE_SECTION, BUILD_ID_NOTE))[:-1],
        elf((_NOTE_SECTION, BUILD_ID_NOTE)).replace(b"\x7fELF\x02", b"\x7fELF\x01"),
    ],
    ids=["empty", "text", "no-section", "no-note", "other-owner", "cut-note", "cut-table", "32-bit"],
)
def test_a_library_without_a_note_is_known_by_its_content(tmp_path: Path, content: bytes) -> None:
    """Without a build id note the name is a hash: 40 hex digits, equal for equal content and for nothing else."""
    first, same, other = (tmp_path / name for name in ("first.so", "same.so", "other.so"))
    first.write_bytes(content)
    same.write_bytes(content)
    other.write_bytes(content + b"!")
    assert len(library_build_id(first)) == 40
    assert library_build_id(first) == library_build_id(same) != library_build_id(other)


def test_the_engines_id_follows_each_library(built: Path) -> None:
    """A change of any one library changes the id of the build; the order of the libraries does not."""
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


def test_an_engine_is_found_in_a_folder(built: Path) -> None:
    """A folder of libraries with headers beside it is an engine, and a mapped ``.so.0`` goes before a ``.so``."""
    engine = find_engine(built)
    assert engine.include_dirs == (built.parent / "include",)
    assert engine.library("libllama") == built / "libllama.so"
    (built / "libllama.so.0").write_bytes(b"libllama")
    assert engine.library("libllama") == built / "libllama.so.0"
    assert find_engine(built) == engine


def test_an_engine_is_read_from_its_plain_form(built: Path) -> None:
    """So is one of before, which names one folder of headers."""
    engine = find_engine(built)
    plain = json.loads(json.dumps(engine.to_plain()))
    assert Engine.from_plain(plain) == engine
    (include,) = plain.pop("include_dirs")
    assert Engine.from_plain({**plain, "include_dir": include}) == engine


@pytest.mark.parametrize("name", ENGINE_LIBRARIES)
def test_a_library_that_is_not_there_is_named(built: Path, name: str) -> None:
    """So is the option that makes a single one of a backend for each kind of processor; a path has the reason, too."""
    (built / f"{name}.so").unlink()
    with pytest.raises(EngineError, match=rf"{name}\.so is not there"):
        find_engine(built)
    if name == "libggml-cpu":
        (built / "libggml-cpu-haswell.so").touch()
        with pytest.raises(EngineError, match=r"libggml-cpu\.so is not there; build it with -DGGML_BACKEND_DL=OFF"):
            find_engine(built)
    with pytest.raises(EngineError, match=r"lib: cannot be read \(Is a directory\)"):
        library_build_id(built)


def test_no_llama_cpp_python_is_told_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without llama-cpp-python the message says what to install."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EngineError, match=r"not installed; run 'make env' or 'pip install llama-cpp-python'"):
        find_engine()
