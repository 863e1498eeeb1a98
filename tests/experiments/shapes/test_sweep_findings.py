"""Sentences about a sweep over shapes."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.experiments.shapes.sweep_findings import quantile_name, size_list, sweep_finding, sweep_remarks
from perfsuite.testing.shape_meters import SimulatedMeters
from tests.synthetic_shape_sweep import bmm_setting, line, staircase, swept


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
    """Of ggml's operators the distance of what is found, or none; of the model alone its mean."""
    assert sweep_finding(swept(bmm_setting(tile=None), SimulatedMeters(time_ns=staircase(32), sigma=0.003))) == (
        "15 steps, 32 apart"
    )
    assert sweep_finding(swept(bmm_setting(tile=None), SimulatedMeters(time_ns=line))) == "No steps"
    assert sweep_finding(swept(bmm_setting(range(1, 41)), SimulatedMeters())).startswith(
        "No multiple of 64 lies well inside the range"
    )


def test_wrong_missing_and_falling_sizes_are_named() -> None:
    """With the reason of the first one that is missing."""
    meters = SimulatedMeters(
        crashes=lambda case: case.shape.of("n") in (5, 6), wrong=lambda case: case.shape.of("n") == 9
    )
    remarks = list(sweep_remarks(swept(bmm_setting(range(1, 41)), meters, verifies=True)))
    assert "The output is wrong at n = 9." in remarks
    assert any(each.startswith("Not measured is n = 5, 6: ") and "n5-" in each for each in remarks)
    meters = SimulatedMeters(time_ns=lambda case: 1e6 if case.shape.of("n") <= 32 else 5e5, sigma=0.003)
    remarks = list(sweep_remarks(swept(bmm_setting(range(1, 65), tile=None), meters)))
    assert remarks == ["The time falls behind n = 32: a larger size is faster there."]


def test_lists_and_quantiles_have_words() -> None:
    """Of many sizes the first eight are listed; a time is the lower quartile, unless it lies between two modes."""
    assert size_list((1, 2)) == "1, 2"
    assert size_list(tuple(range(10))) == "0, 1, 2, 3, 4, 5, 6, 7 and 2 more"
    sweep = swept(bmm_setting(range(1, 41)), SimulatedMeters())
    assert quantile_name(sweep) == "lower quartile"
    assert quantile_name(replace(sweep, quantile=0.5)) == "median"
    assert quantile_name(replace(sweep, quantile=0.125)) == "lower eighth"
    assert quantile_name(replace(sweep, quantile=0.9)) == "quantile 0.9"
