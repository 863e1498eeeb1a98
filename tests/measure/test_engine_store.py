"""The store of engines."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from perfsuite.errors import EngineError
from perfsuite.measure.bundle.elf import ElfNeeds
from perfsuite.measure.engine import Engine, find_engine
from perfsuite.measure.engine_store import EngineStore, engine_folder, open_store


@pytest.fixture
def store(tmp_path: Path) -> EngineStore:
    return open_store(tmp_path / "cache")


@pytest.fixture
def build(tmp_path: Path) -> Engine:
    libraries, headers = tmp_path / "build" / "lib", tmp_path / "build" / "include"
    libraries.mkdir(parents=True)
    headers.mkdir()
    for name in ("libllama", "libggml", "libggml-base", "libggml-cpu"):
        (libraries / f"{name}.so.0").write_bytes(name.encode() * 100)
        (libraries / f"{name}.so").symlink_to(f"{name}.so.0")
    for name in ("llama.h", "ggml.h", "stdio.h"):
        (headers / name).write_text(f"// {name}")
    for name in ("libc.so.6", "llama-cli", "libggml.a"):
        (libraries / name).write_text("not the engine's")
    (libraries.parent / "CMakeCache.txt").write_text("GGML_AVX512:BOOL=ON\nHOME:PATH=/here\n")
    return find_engine(libraries)


def test_the_installed_engine_is_found_again_with_its_build_id(store: EngineStore) -> None:
    engine = find_engine()
    kept = store.keep_engine(engine, "llama 1")
    folder = store.folder_of(kept.engine_id)
    assert folder is not None
    again = find_engine(engine_folder(folder))
    assert (again.build_id, kept.build_id) == (engine.build_id, engine.build_id)
    assert again.library_dir != engine.library_dir
    assert store.find(kept.engine_id[:6]).version == "llama 1"


def test_an_engine_has_what_its_libraries_need_and_lies_beside_them(
    store: EngineStore, build: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A board may have no OpenMP of its own; what every system has is left to it, and what is elsewhere, too."""
    needed = {"libggml-cpu.so.0": ("libgomp.so.1", "libc.so.6", "libelsewhere.so.1"), "libgomp.so.1": ("libdeep.so",)}
    for name in ("libgomp.so.1", "libdeep.so", "libunused.so"):
        (build.library_dir / name).write_text(name)
    monkeypatch.setattr(
        "perfsuite.measure.engine_store.read_needs",
        lambda path: ElfNeeds(machine=(64, 62), libraries=needed.get(path.name, ()), versions=frozenset()),
    )
    others = {name for name in store.keep_engine(build).files if "llama" not in name and "ggml" not in name}
    assert others == {"lib/libgomp.so.1", "lib/libdeep.so"}


def test_an_engine_has_its_libraries_headers_and_settings_and_nothing_else(store: EngineStore, build: Engine) -> None:
    """Names decide what belongs to an engine; equal files are kept once; how it was built comes from CMake's cache."""
    kept = store.keep_engine(build)
    assert {name.partition("/")[2] for name in kept.files} == {
        *(f"{name}.so{end}" for name in ("libllama", "libggml", "libggml-base", "libggml-cpu") for end in ("", ".0")),
        "llama.h",
        "ggml.h",
    }
    assert kept.settings == {"GGML_AVX512": "ON"}
    assert (
        kept.n_bytes
        == sum(len(f"{name}") for name in ("libllama", "libggml", "libggml-base", "libggml-cpu")) * 100 + 19
    )


def test_the_same_engine_is_one_entry(store: EngineStore, build: Engine) -> None:
    first = store.keep_engine(build, "first")
    assert store.keep_engine(build, "second") == first
    (build.library_dir / "libggml.so.0").write_bytes(b"changed")
    assert store.keep_engine(build).engine_id != first.engine_id
    assert len(store.entries()) == 2


def test_a_damaged_engine_is_refused_and_kept_anew(store: EngineStore, build: Engine) -> None:
    kept = store.keep_engine(build)
    (store.folder / kept.engine_id / "lib" / "libggml.so").unlink()
    with pytest.raises(EngineError, match=r"lib/libggml\.so has another content than when it was kept"):
        store.folder_of(kept.engine_id)
    store.keep_engine(build)
    assert store.folder_of(kept.engine_id) is not None


def test_an_archive_brings_an_engine_to_another_store(store: EngineStore, build: Engine, tmp_path: Path) -> None:
    path, other = tmp_path / "engine.tgz", open_store(tmp_path / "other")
    kept = store.keep_engine(build, "llama 1")
    store.write_archive(kept.engine_id, path)
    assert other.read_archive(path) == kept
    assert other.folder_of(kept.engine_id) is not None
    assert other.read_archive(path) == kept
    for content in (b"", b"no archive", b"\x1f\x8b\x08\x00"):
        path.write_bytes(content)
        with pytest.raises(EngineError, match="is not an archive of an engine"):
            other.read_archive(path)


def _rewritten(path: Path, changes: dict[str, bytes | None]) -> None:
    """Change, add or leave out members of an archive; names have the engine's folder before them."""
    with tarfile.open(path) as archive:
        members = {each.name: archive.extractfile(each).read() for each in archive.getmembers()}  # type: ignore[union-attr]
    prefix = next(iter(members)).partition("/")[0]
    members |= {f"{prefix}/{name}": content for name, content in changes.items()}  # type: ignore[misc]
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            if content is not None:
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))


#: Its hashes and its id are right, and a path leads elsewhere.
OUTSIDE = {"schema": 1, "engine_id": "bcf4d3409266f7ab", "kind": "llama.cpp", "n_bytes": 1, "kept_at": ""}
OUTSIDE_FILES = {"lib/../../outside.so": "0" * 64}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"manifest.json": json.dumps({**OUTSIDE, "files": OUTSIDE_FILES}).encode()},
            "does not name the files of an engine",
        ),
        ({"lib/libggml.so": b"other"}, r"lib/libggml\.so has another content than the manifest says"),
        ({"lib/libggml.so": None}, "holds other files than its manifest names"),
        ({"lib/libother.so": b"more"}, "holds other files than its manifest names"),
        ({"manifest.json": b"{}"}, "the manifest cannot be read"),
        ({"manifest.json": b"[" * 100_000}, "the manifest cannot be read"),
        ({"manifest.json": None}, "is not an archive of an engine"),
    ],
)
def test_an_archive_that_was_changed_is_refused(
    store: EngineStore, build: Engine, tmp_path: Path, changes: dict[str, bytes | None], message: str
) -> None:
    path = tmp_path / "engine.tgz"
    store.write_archive(store.keep_engine(build).engine_id, path)
    _rewritten(path, changes)
    other = open_store(tmp_path / "other")
    with pytest.raises(EngineError, match=message):
        other.read_archive(path)
    assert list(other.folder.iterdir()) == []


def test_a_full_store_refuses_and_says_how_to_make_room(store: EngineStore, build: Engine) -> None:
    """Nothing is removed to make room by itself: what a baseline names may be the oldest."""
    small = EngineStore(folder=store.folder, limit_bytes=5000)
    small.keep_engine(build)
    (build.library_dir / "libggml.so.0").write_bytes(b"changed")
    with pytest.raises(EngineError, match=r"beyond its limit of .*; make room with 'perfsuite engines prune'"):
        small.keep_engine(build)
    assert len(small.entries()) == 1


def test_an_engine_in_use_is_not_removed(store: EngineStore, build: Engine) -> None:
    """A run that measures it has it until the end."""
    kept = store.keep_engine(build)
    with store.in_use(kept.engine_id):
        assert not store.remove(kept.engine_id)
        assert store.folder_of(kept.engine_id) is not None
    assert store.remove(kept.engine_id)
    assert store.entries() == ()


def test_the_id_that_is_asked_for_must_be_of_one_engine(store: EngineStore, build: Engine) -> None:
    with pytest.raises(EngineError, match=r"0 engines have an id that begins so; .* holds nothing"):
        store.find("12")
    kept = store.keep_engine(build)
    assert store.find(kept.engine_id[:4]) == kept
    assert [store.folder_of(each) for each in ("", "..", "0" * 16, "../../etc")] == [None] * 4
