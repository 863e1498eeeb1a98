"""Sentences about a sweep over shapes."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.experiments.shapes.sweep_findings import (
    quantile_name,
    shape_sweep_chart,
    size_list,
    sweep_finding,
    sweep_remarks,
)
from perfsuite.experiments.shapes.sweep_record import COLUMNS, expected_sweep, write_sweep_csv
from perfsuite.testing.shape_meters import SimulatedMeters
from tests.synthetic_shape_sweep import bmm_setting, line, staircase, swept


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


STAIRCASE = SimulatedMeters(time_ns=staircase(64), sigma=0.0)


def test_times_and_efficiencies_are_drawn_beside_the_model() -> None:
    """In microseconds; at a whole tile all three meet. The finding is the title, with the setting below it."""
    chart = shape_sweep_chart(swept(bmm_setting(), STAIRCASE))
    times, efficiencies = chart.panels
    measured, model, ideal = times.lines
    assert measured.x == model.x == ideal.x == tuple(map(float, range(1, 513)))
    assert measured.y == pytest.approx(model.y)
    assert (measured.y[0], measured.y[63], measured.y[64]) == pytest.approx((128.0, 128.0, 256.0))
    assert (ideal.y[0], ideal.y[63]) == pytest.approx((2.0, 128.0))
    assert ideal.is_reference
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


def test_what_disagrees_with_the_tile_is_told() -> None:
    """Each missing step, a distance that is not the tile's, and noise where it is to blame, with what it hides."""
    sweep = swept(bmm_setting(), SimulatedMeters(time_ns=line))
    assert sweep_finding(sweep).startswith("Steps at 0 of 7 multiples of 64; ")
    (remark,) = sweep_remarks(sweep)
    assert remark.startswith("No step at n = 64, 128, 192, 256, 320, 384, 448, ")
    sweep = swept(bmm_setting(tile=64), SimulatedMeters(time_ns=staircase(48), sigma=0.003))
    assert "The steps are 48 apart, not 64: that is not the tile which computes." in sweep_remarks(sweep)
    none = swept(bmm_setting(range(1, 191)), SimulatedMeters(time_ns=staircase(48), sigma=0.003))
    assert sweep_finding(none).startswith("3 steps, 48 apart, none at a multiple of 64; ")
    remarks = list(sweep_remarks(swept(bmm_setting(), SimulatedMeters(time_ns=staircase(64), sigma=0.5))))
    (noisy,) = (each for each in remarks if each.startswith("Too noisy: times scatter by "))
    assert "448" in noisy


def test_a_sweep_without_multiples_says_what_there_is() -> None:
    assert sweep_finding(swept(bmm_setting(tile=None), SimulatedMeters(time_ns=staircase(32), sigma=0.003))) == (
        "15 steps, 32 apart"
    )
    assert sweep_finding(swept(bmm_setting(tile=None), SimulatedMeters(time_ns=line))) == "No steps"
    assert sweep_finding(swept(bmm_setting(range(1, 41)), SimulatedMeters())).startswith(
        "No multiple of 64 lies well inside the range"
    )


def test_falling_sizes_are_named() -> None:
    meters = SimulatedMeters(time_ns=lambda case: 1e6 if case.shape.of("n") <= 32 else 5e5, sigma=0.003)
    remarks = list(sweep_remarks(swept(bmm_setting(range(1, 65), tile=None), meters)))
    assert remarks == ["The time falls behind n = 32: a larger size is faster there."]


def test_lists_and_quantiles_have_words() -> None:
    assert size_list((1, 2)) == "1, 2"
    assert size_list(tuple(range(10))) == "0, 1, 2, 3, 4, 5, 6, 7 and 2 more"
    sweep = expected_sweep(bmm_setting(range(1, 41)))
    quantiles = {0.25: "lower quartile", 0.5: "median", 0.125: "lower eighth", 0.9: "quantile 0.9"}
    assert {each: quantile_name(replace(sweep, quantile=each)) for each in quantiles} == quantiles
