"""Files that are written whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import BaselineError
from perfsuite.records.json_file import write_json


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    """Folders are made, and the content is JSON that ends in a newline."""
    path = tmp_path / "a" / "b.json"
    write_json(path, {"µs": [1, None]}, BaselineError)
    assert json.loads(path.read_text()) == {"µs": [1, None]}
    assert path.read_text().endswith("}\n")


def test_a_list_of_numbers_is_one_line(tmp_path: Path) -> None:
    """Samples can be read and reviewed: one line a case, whatever strings look like."""
    path = tmp_path / "b.json"
    plain = {"a": [1, -2.5e-30, 3], "b": [], "c": ["[\n1,\n2\n]", [4]], "d": [None, 1]}
    write_json(path, plain, BaselineError)
    assert json.loads(path.read_text()) == plain
    assert ' "a": [1, -2.5e-30, 3],\n "b": [],\n' in path.read_text()


@given(st.recursive(st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False), st.lists))
def test_any_value_is_read_back(tmp_path_factory: pytest.TempPathFactory, plain: object) -> None:
    """Putting numbers on one line changes no value."""
    path = tmp_path_factory.getbasetemp() / "any.json"
    write_json(path, {"x": plain}, BaselineError)
    assert json.loads(path.read_text()) == {"x": plain}


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the last step fails the old content stays, and nothing else lies beside it."""
    path = tmp_path / "b.json"
    write_json(path, {"old": 1}, BaselineError)

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(BaselineError, match=r"b\.json: cannot be written \(No space left on device\)"):
        write_json(path, {"new": 2}, BaselineError)
    assert json.loads(path.read_text()) == {"old": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["b.json"]


def test_infinity_is_refused(tmp_path: Path) -> None:
    """JSON has no infinity, so none is written."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "c.json", {"x": float("inf")}, BaselineError)
    assert list(tmp_path.iterdir()) == []
