"""Rooflines in files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.experiments.roofline.stored_run import read_roofline
from tests.synthetic_roofline import independent_rate, memory_record, roofline_run

RUN = roofline_run(memory=(memory_record(),), bounds=(independent_rate(),))


def test_a_bandwidth_that_was_measured_has_a_working_set(tmp_path: Path) -> None:
    """Only where there is no rate may the working set be left out."""
    plain = RUN.to_plain()
    plain["ceilings"][0]["working_set_bytes"] = None
    (tmp_path / "run.json").write_text(json.dumps(plain))
    with pytest.raises(MeasurementError, match="working_set_bytes is None"):
        read_roofline(tmp_path / "run.json")
