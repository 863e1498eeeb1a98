"""The picture of a sweep over shapes."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.shapes.sweep_chart import shape_sweep_chart
from perfsuite.experiments.shapes.sweep_csv import COLUMNS, write_sweep_csv
from perfsuite.experiments.shapes.sweep_expected import expected_sweep
from perfsuite.report.plots.picture import picture_bytes
from perfsuite.testing.shape_meters import SimulatedMeters
from tests.synthetic_shape_sweep import bmm_setting, staircase, swept


def test_a_row_has_a_size(tmp_path: Path) -> None:
    """What is not known is empty, and the line of the chart goes on behind it."""
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
    assert shape_sweep_chart(sweep).panels[0].lines[0].x == (1.0, 3.0)


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """It is named."""
    (tmp_path / "file").touch()
    with pytest.raises(PerfsuiteError, match=r"sweep\.csv: cannot be written"):
        write_sweep_csv(swept(bmm_setting(range(1, 4)), SimulatedMeters()), tmp_path / "file" / "sweep.csv")


STAIRCASE = SimulatedMeters(time_ns=staircase(64), sigma=0.0)


def test_times_are_drawn_beside_the_model_and_the_ideal() -> None:
    """In microseconds; at a whole tile all three meet."""
    chart = shape_sweep_chart(swept(bmm_setting(), STAIRCASE))
    times, _ = chart.panels
    measured, model, ideal = times.lines
    assert measured.x == model.x == ideal.x == tuple(map(float, range(1, 513)))
    assert measured.y == pytest.approx(model.y)
    assert (measured.y[0], measured.y[63], measured.y[64]) == pytest.approx((128.0, 128.0, 256.0))
    assert (ideal.y[0], ideal.y[63]) == pytest.approx((2.0, 128.0))
    assert ideal.is_reference
    assert b"<svg" in picture_bytes(chart, "svg")


def test_efficiencies_are_drawn_below() -> None:
    """Measured and model, over the same axis, with the means; the finding is the title, with the setting below it."""
    chart = shape_sweep_chart(swept(bmm_setting(), STAIRCASE))
    times, efficiencies = chart.panels
    measured, model = efficiencies.lines
    assert [line.label for line in efficiencies.lines] == [line.label for line in times.lines[:2]]
    assert measured.y == pytest.approx(model.y)
    assert times.x_axis == efficiencies.x_axis
    assert "mean 0.833 measured, 0.833 model" in efficiencies.title
    assert chart.n_columns == 1
    assert chart.title.startswith("Steps at 7 of 7 multiples of 64; ")
    assert "bmm n1:512 b32 m1 k128 f32, tile 64, vector 8, tiled on simulated device" in chart.note


@pytest.mark.parametrize(("sizes", "tick_step"), [(range(1, 513), 64.0), (range(1, 2049), 128.0)])
def test_ticks_are_at_multiples_of_the_tile(sizes: range, tick_step: float) -> None:
    """Of many at each second, so that they do not crowd."""
    chart = shape_sweep_chart(expected_sweep(bmm_setting(sizes)))
    axis = chart.panels[0].x_axis
    assert (axis.least, axis.most, axis.tick_step) == (1.0, float(sizes[-1]), tick_step)


def test_only_what_is_known_is_drawn() -> None:
    """Without a tile there is no model, and ticks as they come; the model alone is one panel and names no device."""
    chart = shape_sweep_chart(swept(bmm_setting(tile=None), STAIRCASE))
    assert [[line.label for line in panel.lines] for panel in chart.panels] == [
        ["measured", "ideal: no padding"],
        ["measured"],
    ]
    assert chart.panels[0].x_axis.tick_step is None
    chart = shape_sweep_chart(expected_sweep(bmm_setting()))
    (efficiencies,) = chart.panels
    assert [line.label for line in efficiencies.lines] == ["model: padded to whole tiles"]
    assert chart.note.endswith("nothing measured; padding after LIFE, Fig. 8")
