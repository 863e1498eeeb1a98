"""Files of a folder that change together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfsuite.errors import BaselineError
from perfsuite.records.whole_set import JOURNAL_NAME, complete, pending_text, plain_name, write_together


@pytest.mark.parametrize("name", ["host", "smollm2-135m-q8_0", "qwen1.5-moe-a2.7b-l2-q4_k", "_v..2", "9" * 200])
def test_a_name_that_is_one_part_of_a_path_is_taken(name: str) -> None:
    assert plain_name(name, "device", BaselineError) == name


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "/x", "a/b", "a\\b", "a\0", "a\n", "-x", ".x", "9" * 201])
def test_a_name_that_leads_elsewhere_is_one_line(name: str) -> None:
    with pytest.raises(BaselineError, match=r"^run\.json: device is '.*, expected a plain name: letters, ") as caught:
        plain_name(name, "run.json: device", BaselineError)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def _cut(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write two files, and be cut off before the first of them."""
    with monkeypatch.context() as patch:
        patch.setattr("perfsuite.records.whole_set.write_whole_bytes", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write_together(folder, {"a": "new a", "b": "new b"}, BaselineError)


def test_what_was_cut_off_is_read_as_new_and_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The texts count from the moment at which all are on the disk."""
    (tmp_path / "a").write_text("old a")
    _cut(tmp_path, monkeypatch)
    assert (tmp_path / "a").read_text() == "old a"
    assert [pending_text(tmp_path / name, BaselineError) for name in "abc"] == ["new a", "new b", None]
    complete(tmp_path, BaselineError)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "new a", "b": "new b"}
    complete(tmp_path, BaselineError)


def test_a_file_that_was_changed_since_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody restored or edited meanwhile counts, and not what was cut off."""
    _cut(tmp_path, monkeypatch)
    (tmp_path / "a").write_text("edited")
    assert pending_text(tmp_path / "a", BaselineError) is None
    complete(tmp_path, BaselineError)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "edited", "b": "new b"}


def test_what_would_write_outside_the_folder_is_refused(tmp_path: Path) -> None:
    content = {"schema": 1, "files": {"../a": {"text": "x", "before": None}}}
    (tmp_path / JOURNAL_NAME).write_text(json.dumps(content))
    for work in (lambda: complete(tmp_path, BaselineError), lambda: pending_text(tmp_path / "a", BaselineError)):
        with pytest.raises(BaselineError, match=rf"^{tmp_path / JOURNAL_NAME}: .*expected a plain name"):
            work()
