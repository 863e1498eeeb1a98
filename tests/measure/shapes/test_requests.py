"""Requests and answers are the same on both sides of the pipe, or refused."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.shapes.meter import BenchDescription, Deviation
from perfsuite.measure.shapes.requests import ANSWER_MARK, ProgressMark, RequestKind, ShapeAnswer, ShapeRequest

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
    """A process that was killed has said at which case it was, and in which step."""
    mark = ProgressMark(tmp_path / "mark")
    assert mark.read() == (0, 0)
    subprocess.run([sys.executable, "-c", CHILD, str(tmp_path / "mark")], check=False, timeout=60)
    assert mark.read() == (3, 2)
    mark.close()


ANSWERS = {
    "description": ShapeAnswer(
        number=0,
        description=BenchDescription(device="ä", n_compute_units=2, fingerprint=(("driver", "1"), ("engine", "2"))),
    ),
    "failure": ShapeAnswer(number=1, failure="two\nlines"),
    "problem": ShapeAnswer(number=2, problem="no such type"),
    "no_problem": ShapeAnswer(number=3),
    "deviation": ShapeAnswer(number=4, deviation=Deviation(error_norm=math.inf, tolerance=1e-3)),
    "samples": ShapeAnswer(number=5, samples_ns=((1, 2), (3, 4))),
}


@pytest.mark.parametrize("kind", RequestKind)
def test_a_request_comes_over_whole(kind: RequestKind) -> None:
    """What is read is what was written, on one line."""
    request = ShapeRequest(number=7, kind=kind, case_ids=("shape/ä\n", "b"), n_samples=3, order_seed=9)
    line = request.to_line()
    assert "\n" not in line
    assert ShapeRequest.from_line(line) == request


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_comes_over_whole(answer: ShapeAnswer) -> None:
    """What is read is what was written, on one line that begins with the mark; infinity too."""
    line = answer.to_line()
    assert line.startswith(ANSWER_MARK)
    assert "\n" not in line
    assert ShapeAnswer.from_line(line) == answer


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
    """A line of something else names itself in the refusal."""
    with pytest.raises(MeasurementError, match=f"shapes: no {what}: "):
        ShapeRequest.from_line(line) if what == "request" else ShapeAnswer.from_line(f"{ANSWER_MARK}{line}")
