"""Kept shapes as files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import BaselineError
from perfsuite.experiments.shapes.examples_file import ShapeExample, examples_path, read_examples, write_examples

EXAMPLE = ShapeExample(
    case_id="shape/tiled/gemm/m1-n1-k33/f32/tile64-vector8",
    property="padding",
    ratio=2.0,
    lower_ratio=1.9,
    upper_ratio=2.1,
    recorded_at="2025-01-01T00:00:00+00:00",
    note="the tail of a row",
    fingerprint=(("device", "one"), ("driver", "1")),
)


def test_examples_come_back_as_they_were_written(tmp_path: Path) -> None:
    """Ratios, acceptance, note and the bench's fingerprint are all kept; a file that is not there has none."""
    accepted = replace(EXAMPLE, property="growth", accepted_ratio=1.5, ratio=None, lower_ratio=None, upper_ratio=None)
    elsewhere = replace(EXAMPLE, fingerprint=(("device", "another"),))
    write_examples(tmp_path / "x.json", (EXAMPLE, accepted, elsewhere))
    assert set(read_examples(tmp_path / "x.json")) == {EXAMPLE, accepted, elsewhere}
    assert read_examples(tmp_path / "none.json") == ()


def test_a_file_is_the_same_in_whatever_order_examples_come(tmp_path: Path) -> None:
    """Entries are by fingerprint, examples by property and by sizes as numbers: 9 before 10."""
    ids = [f"shape/tiled/gemm/m1-n1-k{k}/f32/tile64-vector8" for k in (9, 10, 33)]
    examples = [replace(EXAMPLE, case_id=each) for each in ids]
    write_examples(tmp_path / "a.json", examples)
    write_examples(tmp_path / "b.json", reversed(examples))
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert [each.case_id for each in read_examples(tmp_path / "a.json")] == ids


def test_a_file_is_named_by_subject_and_operation() -> None:
    """All sizes of an operation lie in one file of the device's."""
    assert examples_path(Path("b"), "host", EXAMPLE.case_id) == Path("b/host/shapes/tiled-gemm.json")
    with pytest.raises(BaselineError, match="gemm: not a shape's case id"):
        examples_path(Path("b"), "host", "gemm")
    for device, case_id in (("../host", EXAMPLE.case_id), ("host", "shape/../../x/gemm")):
        with pytest.raises(BaselineError, match="expected a plain name"):
            examples_path(Path("b"), device, case_id)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            {"ratio": "much"},
            r"s\[0\].examples\['shape/.*'\].ratio is 'much', expected a finite number of 0 or more",
        ),
        ({"accepted_ratio": -1}, "accepted_ratio is -1"),
        ({"accepted_ratio": True}, "accepted_ratio is True"),
        ({"upper_ratio": float("inf")}, "Infinity is no number of JSON"),
        ({"note": None}, "note is null, expected text"),
        ({"case_id": 3}, "case_id is 3, expected text"),
        ({"why": ""}, r"field 'why' is unknown; accepted are case_id, property"),
    ],
)
def test_a_field_of_another_kind_is_named(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    """The error names the file, the example and the field."""
    path = tmp_path / "x.json"
    write_examples(path, (EXAMPLE,))
    plain = json.loads(path.read_text("utf-8"))
    plain["entries"][0]["examples"][0].update(change)
    path.write_text(json.dumps(plain), "utf-8")
    with pytest.raises(BaselineError, match=complaint) as error:
        read_examples(path)
    assert str(error.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "is not JSON"),
        ("[]", "is a list, expected an object"),
        ('{"schema": 1}', "entries is missing"),
        ('{"schema": 9, "entries": []}', "schema is 9, expected 1"),
        ('{"schema": 1, "entries": [3]}', r"entries\[0\] is 3, expected an object"),
        (
            '{"schema": 1, "entries": [{"fingerprint": {}, "examples": {}}]}',
            r"\.examples is an object, expected a l",
        ),
        ('{"schema": 1, "entries": [{"fingerprint": {}, "examples": [1]}]}', r"examples\[0\] is 1, expected an object"),
    ],
)
def test_what_is_no_file_of_examples_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    """The error names the file and says what to do."""
    path = tmp_path / "x.json"
    path.write_text(text, "utf-8")
    with pytest.raises(BaselineError, match=complaint) as error:
        read_examples(path)
    assert "restore it from version control" in str(error.value)
    with pytest.raises(BaselineError, match="cannot be read"):
        read_examples(tmp_path)
