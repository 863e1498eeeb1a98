"""Rooflines in files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.expectation.roofline.ceiling import Ceiling, Resource
from perfsuite.expectation.roofline.survey import Survey
from perfsuite.experiments.roofline.stored_run import read_roofline, write_roofline
from tests.synthetic_roofline import independent_rate, memory_record, roofline_run, survey

RUN = roofline_run(memory=(memory_record(),), bounds=(independent_rate(),))


def test_a_run_comes_back(tmp_path: Path) -> None:
    """Rows, ceilings, memory and bounds, into a folder that is made; a ceiling that is missing has its reason."""
    path = tmp_path / "folder" / "run.json"
    write_roofline(RUN, path)
    assert read_roofline(path) == RUN
    missing = [
        Ceiling(processor="opencl", resource=resource, kind=kind, missing="no platform has a device")
        for resource, kind in ((Resource.BANDWIDTH, "read"), (Resource.COMPUTE, "fp32"))
    ]
    run = roofline_run(survey=Survey(ceilings=(*survey().ceilings, *missing)))
    write_roofline(run, tmp_path / "run.json")
    assert read_roofline(tmp_path / "run.json") == run


def test_a_bandwidth_that_was_measured_has_a_working_set(tmp_path: Path) -> None:
    """Only where there is no rate may the working set be left out."""
    plain = RUN.to_plain()
    plain["ceilings"][0]["working_set_bytes"] = None
    (tmp_path / "run.json").write_text(json.dumps(plain))
    with pytest.raises(MeasurementError, match="working_set_bytes is None"):
        read_roofline(tmp_path / "run.json")


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """A file where the folder should be is one line with the path, and it stays as it was."""
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(MeasurementError, match=r"taken.*run\.json: cannot be written"):
        write_roofline(RUN, tmp_path / "taken" / "run.json")
    assert (tmp_path / "taken").read_text() == "mine"


#: What the fields of a run are not.
WRONG: list[tuple[str, Any]] = [
    *(("rows", 5), ("rows", [5]), ("ceilings", [{}]), ("memory", [5]), ("bounds", [5]), ("bounds", [{}])),
    *(("bounds", {"a": 1}), ("n_threads", None), ("fingerprint", 5)),
]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is not JSON"),
        ("roofline", "is not JSON"),
        (json.dumps(RUN.to_plain())[:-200], "is not JSON"),
        ("[" * 200_000, "is not JSON"),
        (json.dumps({**RUN.to_plain(), "n_threads": 10**400}), "n_threads is 1000"),
        ("[1, 2]", "roofline: is a list, expected an object"),
        ("null", "roofline: is null, expected an object"),
        ("{}", "schema is missing, expected 1"),
        (json.dumps({**RUN.to_plain(), "schema": 99}), "schema is 99, expected 1; measure again"),
        (json.dumps({**RUN.to_plain(), "rows": [{}]}), "rows[0]: sweep is missing"),
        *((json.dumps({**RUN.to_plain(), name: wrong}), "measure again") for name, wrong in WRONG),
    ],
)
def test_a_file_that_is_none_is_told_in_one_line(tmp_path: Path, text: str, told: str) -> None:
    """Empty, cut short, of another schema or with wrong fields: the file is named, and what is wrong with it."""
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(MeasurementError) as refused:
        read_roofline(path)
    message = str(refused.value)
    assert message.startswith(f"{path}: ")
    assert told in message
    assert "\n" not in message


@pytest.mark.parametrize(("content", "told"), [(None, "No such file"), (b"\xff\xfe\x00", "is not JSON")])
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, content: bytes | None, told: str) -> None:
    """A missing file and one that is no text name what is expected."""
    path = tmp_path / "run.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(MeasurementError, match=rf"{told}.*expected a file of 'perfsuite roofline'"):
        read_roofline(path)
    with pytest.raises(MeasurementError, match="Is a directory"):
        read_roofline(tmp_path)


@pytest.mark.parametrize("name", [*RUN.to_plain()])
def test_each_field_is_needed(tmp_path: Path, name: str) -> None:
    """A file without one of the fields says which."""
    plain: dict[str, Any] = RUN.to_plain()
    del plain[name]
    path = tmp_path / "run.json"
    path.write_text(json.dumps(plain))
    with pytest.raises(MeasurementError, match=name):
        read_roofline(path)
