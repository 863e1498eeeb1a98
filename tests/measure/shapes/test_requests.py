"""Requests and answers are the same on both sides of the pipe, or refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.shapes.requests import ANSWER_MARK, ProgressMark, ShapeAnswer, ShapeRequest

CHILD = """
import os, sys
from pathlib import Path
from perfsuite.measure.shapes.requests import ProgressMark
mark = ProgressMark(Path(sys.argv[1]))
for place in (0, 4, 2):
    mark.step(place)
os.abort()
"""


def test_a_mark_outlives_its_process(tmp_path: Path) -> None:
    mark = ProgressMark(tmp_path / "mark")
    assert mark.read() == (0, 0)
    subprocess.run([sys.executable, "-c", CHILD, str(tmp_path / "mark")], check=False, timeout=60)
    assert mark.read() == (3, 2)
    mark.close()


@pytest.mark.parametrize(
    ("what", "line"),
    [
        *((what, line) for what in ("request", "answer") for line in ("no JSON", "[]", "7", "{}")),
        ("request", '{"number": 1, "kind": "divine", "case_ids": []}'),
        ("request", '{"number": 1, "kind": "verify", "case_ids": [], "volume": 11}'),
        ("answer", '{"number": 1, "volume": 11}'),
        ("answer", '{"number": 1, "deviation": {"error": 1}}'),
    ],
)
def test_what_is_none_is_refused(what: str, line: str) -> None:
    with pytest.raises(MeasurementError, match=f"shapes: no {what}: "):
        ShapeRequest.from_line(line) if what == "request" else ShapeAnswer.from_line(f"{ANSWER_MARK}{line}")
