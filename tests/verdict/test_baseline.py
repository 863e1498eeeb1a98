"""Stored baselines: read, merged, written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import BaselineError
from perfsuite.verdict.baseline import (
    SCHEMA,
    BaselineEntry,
    BaselineFile,
    baseline_path,
    read_baselines,
    write_baselines,
)

TWO_THREADS = {"soc": "A", "threads": "2"}
ONE_THREAD = {"soc": "A", "threads": "1"}


def entry(fingerprint: Mapping[str, str] = TWO_THREADS, **samples: tuple[int, ...]) -> BaselineEntry:
    """An entry of today."""
    return BaselineEntry(
        fingerprint=dict(fingerprint), recorded_at="2025-01-01T00:00:00Z", suite_version="1", samples_ns=samples
    )


def plain_entry(**changes: Any) -> dict[str, Any]:
    """An entry as the file has it, with other fields."""
    plain = {"fingerprint": TWO_THREADS, "recorded_at": "now", "suite_version": "1", "cases": {"a": [1, 2]}}
    return {**plain, **changes}


_TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
_ENTRIES = st.builds(
    BaselineEntry,
    fingerprint=st.dictionaries(_TEXT, _TEXT, max_size=3),
    recorded_at=_TEXT,
    suite_version=_TEXT,
    samples_ns=st.dictionaries(_TEXT, st.lists(st.integers(1, 2**63), max_size=3).map(tuple), max_size=3),
)


@given(st.lists(_ENTRIES, max_size=3))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, entries: list[BaselineEntry]) -> None:
    """Any entries equal themselves after their way through the file."""
    path = tmp_path_factory.mktemp("baselines") / "host" / "model.json"
    baselines = BaselineFile(path=path, entries=tuple(entries))
    write_baselines(baselines)
    assert read_baselines(path) == baselines


def test_a_file_is_named_by_device_and_model(tmp_path: Path) -> None:
    """A device has a folder, a model a file in it."""
    assert baseline_path(tmp_path, "host", "kernels") == tmp_path / "host" / "kernels.json"


def test_a_file_is_text_that_can_be_reviewed(tmp_path: Path) -> None:
    """The file is indented JSON that ends with a newline, readable by all, with the schema first."""
    path = tmp_path / "model.json"
    write_baselines(BaselineFile(path=path, entries=(entry(a=(1, 2)),)))
    text = path.read_text("utf-8")
    assert text.startswith(f'{{\n "schema": {SCHEMA},\n')
    assert text.endswith("}\n")
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_file_that_is_not_there_is_empty(tmp_path: Path) -> None:
    """No file is no entries, and no difference to anything."""
    baselines = read_baselines(tmp_path / "none.json")
    assert baselines.entries == ()
    assert baselines.find(TWO_THREADS) is None
    assert baselines.nearest_differences(TWO_THREADS) == ()


def test_an_entry_is_found_by_its_whole_fingerprint(tmp_path: Path) -> None:
    """An entry is found by the same fields and values in any order, and by nothing less."""
    baselines = BaselineFile(path=tmp_path, entries=(entry(ONE_THREAD), entry(TWO_THREADS, a=(1,))))
    assert baselines.find(dict(reversed(TWO_THREADS.items()))) is baselines.entries[1]
    assert baselines.find({**TWO_THREADS, "more": "x"}) is None
    assert baselines.find({"soc": "A"}) is None


def test_the_nearest_entry_says_what_differs(tmp_path: Path) -> None:
    """Of several entries the one with the fewest differences is told."""
    far, near = {"soc": "B", "threads": "4"}, ONE_THREAD
    baselines = BaselineFile(path=tmp_path, entries=(entry(far), entry(near)))
    assert baselines.nearest_differences(TWO_THREADS) == ("threads '1', now '2'",)
    assert baselines.nearest_differences(near) == ()


def test_a_new_entry_replaces_its_own_and_keeps_the_rest(tmp_path: Path) -> None:
    """Cases that were measured anew are replaced, those that were not are kept, other fingerprints untouched."""
    old = BaselineFile(path=tmp_path, entries=(entry(TWO_THREADS, b=(1,), c=(2,)), entry(ONE_THREAD, b=(9,))))
    new = old.with_entry(entry(TWO_THREADS, a=(5,), b=(3, 4)))
    assert new.find(ONE_THREAD) is old.entries[1]
    found = new.find(TWO_THREADS)
    assert found is not None
    assert list(found.samples_ns.items()) == [("a", (5,)), ("b", (3, 4)), ("c", (2,))]
    assert len(new.entries) == 2
    assert old.find(TWO_THREADS) is old.entries[0]


def test_the_first_entry_needs_no_other(tmp_path: Path) -> None:
    """An empty file takes an entry."""
    baselines = BaselineFile(path=tmp_path).with_entry(entry(a=(1,)))
    assert [each.samples_ns for each in baselines.entries] == [{"a": (1,)}]


@pytest.mark.parametrize("content", ["", "{", "no JSON", '{"schema": 1, "entries": [', "\udcff"])
def test_a_corrupt_file_is_one_line(tmp_path: Path, content: str) -> None:
    """What is not JSON is one line with the path, the place and the remedy."""
    path = tmp_path / "model.json"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(BaselineError, match=rf"^{path}: is not JSON \(.*\); restore it .*--baseline=record$"):
        read_baselines(path)


@pytest.mark.parametrize(
    ("content", "seen"),
    [('{"schema": 99, "entries": []}', "99"), ("{}", "None"), ("[]", "'list'"), ("5", "'int'"), ("null", "'NoneType'")],
)
def test_another_schema_is_one_line(tmp_path: Path, content: str, seen: str) -> None:
    """A file of another schema, or of none, is one line with both and the remedy."""
    path = tmp_path / "model.json"
    path.write_text(content)
    with pytest.raises(BaselineError, match=rf"^{path}: schema is {seen}, this suite reads {SCHEMA}; move the file"):
        read_baselines(path)


def _entries_of(damage: Any) -> Any:
    return pytest.param(damage, id=json.dumps(damage)[:40])


@pytest.mark.parametrize(
    "entries",
    [
        _entries_of(None),
        _entries_of(5),
        _entries_of({"a": 1}),
        _entries_of([5]),
        _entries_of([{}]),
        _entries_of([plain_entry(cases=[1])]),
        _entries_of([plain_entry(cases={"a": 5})]),
        _entries_of([plain_entry(cases={"a": [None]})]),
        _entries_of([plain_entry(cases={"a": ["fast"]})]),
        _entries_of([plain_entry(cases={"a": [1, 0]})]),
        _entries_of([plain_entry(cases={"a": [-1]})]),
        _entries_of([plain_entry(cases={"a": [float("nan")]})]),
        pytest.param(
            [plain_entry(cases={"a": [float("inf")]})],
            id="infinity",
        ),
        _entries_of([plain_entry(fingerprint="A")]),
        *(_entries_of([{key: value for key, value in plain_entry().items() if key != lost}]) for lost in plain_entry()),
    ],
)
def test_a_damaged_entry_is_one_line(tmp_path: Path, entries: Any) -> None:
    """An entry that lacks a field, or has another type or a time that is none, is one line with the remedy."""
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"schema": SCHEMA, "entries": entries}))
    with pytest.raises(BaselineError, match=rf"^{path}: an entry cannot be read .*--baseline=record$") as caught:
        read_baselines(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    """A folder in the file's place is told with the path and the system's reason."""
    with pytest.raises(BaselineError, match=rf"^{tmp_path}: cannot be read \(Is a directory\)$"):
        read_baselines(tmp_path)


def _no_space(*_: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("step", ["os.replace", "os.chmod", "os.fdopen", "tempfile.mkstemp", "json.dump"])
def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Wherever writing fails, the old file is as it was and nothing else lies beside it."""
    path = tmp_path / "model.json"
    write_baselines(BaselineFile(path=path, entries=(entry(a=(1,)),)))
    before = path.read_bytes()
    fdopen = os.fdopen

    def failing(*arguments: Any, **options: Any) -> None:
        if step == "os.fdopen":
            fdopen(*arguments, **options).close()
        _no_space()

    with monkeypatch.context() as patched:
        patched.setattr(step, failing)
        with pytest.raises(BaselineError, match=rf"^{path}: cannot be written \(No space left on device\)$"):
            write_baselines(BaselineFile(path=path, entries=(entry(a=(2,)),)))
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["model.json"]


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    """A file in the folder's place is told with the path."""
    (tmp_path / "host").touch()
    path = tmp_path / "host" / "model.json"
    with pytest.raises(BaselineError, match=rf"^{path}: cannot be written \("):
        write_baselines(BaselineFile(path=path))
