"""``perfsuite engines``, on builds whose libraries are a few bytes each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.measure.engine import find_engine
from perfsuite.measure.engine_store import EngineStore, open_store


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EngineStore:
    """Return the store of a cache of this test's own, in whose parent commands run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "cache"))
    return open_store(tmp_path / "cache")


def _build(folder: Path, content: str) -> str:
    """Write a build of llama.cpp in the layout of an install prefix."""
    for name in ("libllama", "libggml", "libggml-base", "libggml-cpu"):
        (folder / "lib" / f"{name}.so").parent.mkdir(parents=True, exist_ok=True)
        (folder / "lib" / f"{name}.so").write_text(content)
    (folder / "include").mkdir()
    for name in ("llama.h", "ggml.h"):
        (folder / "include" / name).write_text("")
    return str(folder)


def test_an_engine_goes_from_one_store_to_another(
    store: EngineStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kept from its folder, exported as one file, and imported where nothing is kept yet."""
    assert main(["engines", "keep", _build(tmp_path / "one", "1")]) == 0
    (entry,) = store.entries()
    assert capsys.readouterr().out.startswith(f"{entry.engine_id}: llama.cpp, build {entry.build_id}, ")
    assert main(["engines", "export", entry.engine_id[:5], "engine.tgz"]) == 0
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "other"))
    assert main(["engines", "import", "engine.tgz"]) == 0
    capsys.readouterr()
    assert main(["engines", "list", "--json"]) == 0
    assert [each["engine_id"] for each in json.loads(capsys.readouterr().out)] == [entry.engine_id]
    assert main(["engines", "show", entry.engine_id[:5]]) == 0
    assert f"{entry.files['lib/libllama.so'][:16]}  lib/libllama.so" in capsys.readouterr().out


def test_prune_leaves_what_baselines_name_and_what_is_in_use(
    store: EngineStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Committed baselines and the checkout's own count, damaged ones as well; --keep leaves the newest of the rest."""
    for name in ("committed", "own", "used", "nobody"):
        main(["engines", "keep", _build(tmp_path / name, name)])
    ids = [store.keep_engine(find_engine(tmp_path / name)).engine_id for name in ("committed", "own", "used", "nobody")]
    for folder, engine_id in ((Path("baselines/host"), ids[0]), (Path(".perfsuite/baselines/host"), ids[1])):
        folder.mkdir(parents=True)
        (folder / "m.json").write_text(f'{{"sessions": [{{"engine": "{engine_id}"')
    for n_kept in (2, 3, 5):  # of two that no baseline names
        assert main(["engines", "prune", f"--keep={n_kept}"]) == 0
        assert len(store.entries()) == 4
    with store.in_use(ids[2]):
        assert main(["engines", "prune"]) == 0
    assert {each.engine_id for each in store.entries()} == set(ids[:3])
    assert "is in use, and stays" in capsys.readouterr().out
