"""A sweep over shapes as CSV."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.shapes.sweep_csv import COLUMNS, write_sweep_csv
from perfsuite.testing.shape_meters import SimulatedMeters
from tests.synthetic_shape_sweep import bmm_setting, swept


def test_a_row_has_a_size(tmp_path: Path) -> None:
    """What is not known is empty."""
    meters = SimulatedMeters(crashes=lambda case: case.shape.of("n") == 2, sigma=0.0)
    sweep = swept(bmm_setting(range(1, 4)), meters)
    write_sweep_csv(sweep, tmp_path / "sweep.csv")
    with (tmp_path / "sweep.csv").open(newline="") as written:
        rows = list(csv.DictReader(written))
    assert tuple(rows[0]) == COLUMNS
    assert [row["size"] for row in rows] == ["1", "2", "3"]
    assert float(rows[0]["time_ns"]) == sweep.points[0].time_ns
    assert (rows[1]["time_ns"], rows[0]["missing"]) == ("", "")
    assert "n2-" in rows[1]["missing"]


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """It is named."""
    (tmp_path / "file").touch()
    with pytest.raises(PerfsuiteError, match=r"sweep\.csv: cannot be written"):
        write_sweep_csv(swept(bmm_setting(range(1, 4)), SimulatedMeters()), tmp_path / "file" / "sweep.csv")
