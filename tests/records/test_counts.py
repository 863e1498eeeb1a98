"""What was counted is kept, and read as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.records.counts import read_counts, write_counts
from tests.counted_work import ROW, WORK


def test_what_was_counted_is_read_back(tmp_path: Path) -> None:
    """The file has all of it."""
    path = tmp_path / "counted" / "it.json"
    write_counts(path, WORK)
    assert read_counts(path) == WORK
    assert WORK.prefix == "tiny/p16-g4"
    assert [row.name for row in WORK.rows] == ["prefill", "prefill/attn_q"]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("schema", 2, "schema is 2, expected 1"),
        ("rows", [{"phase": "prefill"}], "instructions"),
        ("rows", [ROW, ROW], r"'prefill/attn_q'\] is there twice"),
        ("rows", [{**ROW, "reads": -1}], "reads"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, field: str, value: object, message: str) -> None:
    """The message says what, and what to do."""
    path = tmp_path / "it.json"
    write_counts(path, WORK)
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(MeasurementError, match=rf"{message}.*; count again"):
        read_counts(path)
